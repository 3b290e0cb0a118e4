"""Results on a terminal: aligned tables, colour only if it is a terminal, numbers with units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from shoal.alternatives.compare import Comparison, Entry
from shoal.alternatives.frontier import Frontier
from shoal.alternatives.recommend import Exploration, beaten
from shoal.attacks.risk import Attacks
from shoal.cli.columns import Columns, text
from shoal.columns.uniqueness import Separation
from shoal.demo.linkage import Linkage
from shoal.demo.run import ANALYSIS, ANALYSIS_FILE, CERTIFICATE, POLICY_FILE, RELEASE, REPORT, Demo
from shoal.engines.base import Query
from shoal.models.verdict import Outcome, Verdict, Verdicts
from shoal.propose.inspect import Inspection
from shoal.propose.preview import Preview
from shoal.release import Release
from shoal.release.replay import Replay
from shoal.report.essentials import SHARES, essentials, gone, proof, worth
from shoal.report.fates import fates, shown
from shoal.text.figures import counted, interval, number, share
from shoal.verify.certified import Verification

console = Console(highlight=False)


def show_verdicts(verdicts: Verdicts) -> None:
    """Show the requirements, the results, and the classes that fail."""
    table = Columns("requirement", "found", "failing classes", "records", "")
    for verdict in verdicts.verdicts:
        found = f"{verdict.figure} = {number(verdict.worst)}"
        if verdict.outcome == "unknown":
            found = "" if math.isnan(verdict.worst) else found
            table.add(verdict.asked, found, "", "", _MARKS["unknown"])
        elif verdict.outcome == "fails" and not verdict.classes:  # a limit on attacks: no class is responsible
            table.add(verdict.asked, found, "", "", _MARKS["fails"])
        else:
            table.add(verdict.asked, found, number(verdict.classes), number(verdict.records), _MARKS[verdict.outcome])
    table.show(console)
    for verdict in verdicts.verdicts:
        if verdict.missing:
            console.print(text(f"{verdict.asked} cannot be determined: {verdict.missing}."))
    for name in verdicts.identifiers:
        console.print(text(f"column {name!r} is an identifier and was not removed"))
    size = f"{counted(verdicts.records, 'record')} in {counted(verdicts.classes, 'class')}"
    console.print(text(f"{verdicts.sentence}: {size}.", style=_STYLES[verdicts.outcome]))


_MARKS: dict[Outcome, str] = {"holds": "holds", "fails": "FAILS", "unknown": "CANNOT BE DETERMINED"}
_STYLES: dict[Outcome, str] = {"holds": "bold green", "fails": "bold red", "unknown": "bold yellow"}


def show_check(verdicts: Verdicts) -> None:
    """Show the verdicts, and warnings even if the policy holds."""
    show_verdicts(verdicts)
    for warning in verdicts.warnings:
        console.print(text(f"Note: {warning}", style="yellow"))


def show_attacks(found: Attacks, limits: Sequence[Verdict] = ()) -> None:
    """Show the result of every attack with its baseline without the release, then the three criteria."""
    table = Columns("attack", "targets", "worked", "95 %", "control", "beyond", "bound")
    for risk in found:
        table.add(
            risk.name if risk.column is None else f"{risk.name}, {risk.column}",
            number(risk.attempts),
            share(risk.share, 1),
            interval(risk.interval).removesuffix(" %"),
            "" if risk.control is None else share(risk.control.share, 1),
            share(risk.above, 1),
            "" if risk.bound is None else share(risk.bound, 1),
        )
    table.show(console)
    console.print()
    for risk in found:
        console.print(text(f"{risk.name}: {risk.sentence}"))
    console.print()
    _show_answers(found)
    _show_limits(limits)
    for note in (*found.notes, *(f"Skipped: {reason}" for reason in found.left_out)):
        console.print(text(f"Note: {note}", style="yellow"))


def _show_answers(found: Attacks) -> None:
    for answer in found.answers():
        style = "bold red" if answer.possible else "bold green" if answer.possible is False else "bold"
        console.print(text(answer.sentence, style=style))


def _show_limits(limits: Sequence[Verdict]) -> None:
    for verdict in limits:
        told = f"{verdict.asked}: found {number(verdict.worst)}, {_MARKS[verdict.outcome]}."
        console.print(text(told, style=_STYLES[verdict.outcome]))


def show_verification(found: Verification) -> None:
    """Show every statement of a certificate: whether it holds, or why that cannot be determined."""
    table = Columns("claim", "certificate", "found", "", texts=(0, 3))
    for line in found:
        if line.holds is not None:
            mark = "holds" if line.holds else "DOES NOT HOLD" + (f": {line.why}" if line.why else "")
            table.add(line.name, _claim(line.claimed), _claim(line.found), mark)
    table.show(console)
    for why, names in _untold(found).items():
        if names == ["signature"]:
            console.print(text(f"The certificate is {why}."))
            continue
        console.print(text(f"Cannot be checked with the release alone ({why}): {', '.join(names)}.", style="dim"))
    console.print(text(found.sentence, style=_STYLES[found.outcome]))


def show_keys(private: Path, public: Path, own: str, *, locked: bool) -> None:
    """Show a new key pair."""
    lock = "protected by a password" if locked else "without a password"
    console.print(text(f"Private key, {lock}, for anonymize --sign: {private}"))
    console.print(text(f"Public key, for publication and verify --key: {public}"))
    console.print(text(f"Its SHA-256, with which others can check that it is yours: {own}"))


def _claim(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    told = number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return told if len(told) <= 40 else told[:12] + "…"  # a hash


def _untold(found: Verification) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for line in found:
        if line.holds is None:
            reasons.setdefault(line.why, []).append(line.name)
    return reasons


def show_release(
    release: Release,
    output: str | Path,
    warnings: Sequence[str] | None = None,
    beside: Mapping[str, Path | None] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Show the result in about ten lines; ``verbose`` adds every figure.

    ``warnings`` are those of the certificate, which include those about the file; ``beside``: where the certificate,
    report and recoding were written, if they were.
    """
    if verbose:
        _show_details(release)
    known = {str(warning): warning for warning in release.warnings}  # the certificate has only their texts
    told = [known.get(warning, warning) for warning in (release.warnings if warnings is None else warnings)]
    show_brief(release)
    for warning in told if verbose else condensed(told):
        console.print(text(f"Note: {warning}", style="yellow"))
    console.print(text(f"Written and verified: {output}"))
    for what, path in (beside or {}).items():
        if path is not None:
            console.print(text(f"{_BESIDE[what]}: {path}"))


def show_brief(release: Release) -> None:
    """Show the verdict, the three answers, and the information loss."""
    verdicts = release.verdicts
    asked = "; ".join(verdict.asked for verdict in verdicts.verdicts)
    size = f"{counted(verdicts.records, 'record')} in {counted(verdicts.classes, 'class')}"
    console.print(text(f"{verdicts.sentence}: {asked}; {size}.", style=_STYLES[verdicts.outcome]))
    if release.attacks is not None:
        _show_limits(verdicts.verdicts[len(release.policy.models) :])
        _show_answers(release.attacks)
    original = release.counted.table
    columns = fates(release, original, release.recoding.parts(original))
    answers = essentials(release, columns, release.attacks, labels=True)
    for answer in (answers.found, answers.left, answers.inferred):
        console.print(text(answer))
    objective = release.policy.release.objective
    scale = " (0: every value kept, 1: all suppressed)" if objective in SHARES else ""
    loss = f"{objective[:1].upper()}{objective[1:]} {number(release.loss[objective])}{scale}"
    console.print(text(f"{loss}: {proof(release.recoding)}."))


def condensed(warnings: Sequence[str], most: int = 3) -> tuple[str, ...]:
    """Return all warnings; beyond ``most`` of a kind, the first one in full and only the columns of the others."""
    by_kind: dict[str, list[str]] = {}
    for warning in warnings:
        by_kind.setdefault(getattr(warning, "kind", ""), []).append(warning)
    told = []
    for kind, alike in by_kind.items():
        columns = [getattr(warning, "column", None) for warning in alike[1:]]
        if not kind or len(alike) <= most or None in columns:
            told += alike
            continue
        told += [f"{alike[0]} The same applies to {', '.join(map(repr, columns))}: see --verbose."]
    return tuple(told)


def _show_details(release: Release) -> None:
    """Show the verdicts, the levels and every loss."""
    show_verdicts(release.verdicts)
    console.print()
    levels = Columns("column", "level", "of", "a released value", texts=(0, 3))
    for hierarchy in release.recoding.hierarchies:
        level = release.levels[hierarchy.column]
        at = "mixed" if level is None else str(level)
        levels.add(hierarchy.column, at, str(hierarchy.number_of_top), _example(release, hierarchy.column))
    levels.show(console)
    console.print()
    _show_losses(release)
    recoding = release.recoding
    looked = (
        ""
        if recoding.n_nodes is None
        else f"; {number(recoding.n_evaluated)} of {number(recoding.n_nodes)} nodes visited"
    )
    console.print(text(f"{recoding.algorithm}: {release.policy.release.objective} {proof(recoding)}{looked}."))
    if recoding.claim:
        console.print(text(f"Proved: {recoding.claim}."))
    n = release.counted.n_records
    fate = "dropped" if release.policy.release.suppressed == "drop" else "kept as *"
    console.print(text(f"{number(release.suppressed)} of {number(n)} records suppressed ({fate})."))
    console.print()


_BESIDE = {
    "certificate": "Certificate",
    "receipt": "Receipt (keep it with the data, do not publish it)",
    "report": "Report (open it in a browser)",
    "recoding": "Recoding (keep it with the data, do not publish it)",
}


def show_replay(done: Replay, output: Path | str) -> None:
    """Show the result of a replay on new rows."""
    show_check(done.verdicts)
    console.print()
    reasons = {
        "have values unknown to the recoding": done.unknown,
        "have suppressed tuples": done.suppressed,
        "would violate the policy": done.failing,
    }
    n = done.rows.n_records + done.held_back
    console.print(text(f"{number(done.held_back)} of {number(n)} records held back."))
    for reason, records in reasons.items():
        if records:
            console.print(text(f"Note: {number(records)} {reason}", style="yellow"))
    console.print(text(f"Written and verified: {output}"))


def _example(release: Release, column: str) -> str:
    """Return a released value that most records share; a label, not a record."""
    if isinstance(release.rows, Query):
        groups = release.rows.groups
        sums = groups.table.group_by([column]).aggregate([(groups.weight, "sum")])
        values, n = sums[column].to_pylist(), sums[f"{groups.weight}_sum"].to_pylist()
    else:
        counts = release.rows.table[column].value_counts()
        values, n = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    texts = ("(missing)" if value is None else str(value) for value in values)
    common = max(zip(n, texts, strict=True))
    return common[1] if len(common[1]) <= 40 else common[1][:39] + "…"


def _show_losses(release: Release) -> None:
    table = Columns("loss", "value")
    for name, value in release.loss.items():
        table.add(name, number(value))
    table.show(console)
    console.print()


def show_frontier(found: Frontier, own: int | None = None) -> None:
    """Show one line per release with its parameters and cost; ``own`` is the index of the policy itself."""
    swept = list(found.points[0].asked)
    unsolved = any(not point.proved for point in found)  # otherwise nothing distinguishes them
    head = ("", *(_SWEPT.get(name, name) for name in swept), found.objective, *_FOUND, "levels", *[""] * unsolved)
    table = Columns(*head, texts=(0, len(head) - 1) if unsolved else (0,))
    worse = beaten(found)
    for i, point in enumerate(found):
        asked = [share(value, 1) if name == "max_suppression" else f"{value:g}" for name, value in point.asked.items()]
        place = (f"({i + 1}.)" if worse[i] else f"{i + 1}.") + (" *" if i == own else "")
        if not point.feasible:
            table.add(place, *asked, *[""] * 5, point.state)
            continue
        levels = " ".join("·" if level is None else str(level) for level in (point.levels or {}).values())
        figures = [number(point.loss or 0), number(point.suppressed or 0), number(point.classes or 0)]
        state = "proved" if point.proved else "not proved"
        risk = f"1 in {round(1 / (point.risk or 1))}"
        table.add(place, *asked, *figures, risk, levels, *[state] * unsolved)
    table.show(console)
    columns = next((point.levels for point in found if point.levels), None)
    proved = "" if unsolved else f" Every {found.objective} is proved optimal."
    told = f"Levels of {', '.join(columns)}.{proved}" if columns else "No release satisfies any of these requirements."
    console.print(text(told))
    for reason in dict.fromkeys(point.reason for point in found if point.state in ("refused", "cannot be told")):
        console.print(text(f"Not released: {reason}.", style="yellow"))
    if any(worse):
        note = "(In brackets): another release has no more loss, no more risk and equally strict requirements."
        console.print(text(note))
    if own is not None:
        console.print(text("* The policy itself."))


_SWEPT = {"max_suppression": "suppress\nat most"}
_FOUND = ("sup-\npressed", "classes", "worst\nrisk")


def show_exploration(found: Exploration) -> None:
    """Show the points, then the recommendations for the tolerable risk."""
    show_frontier(found.frontier, found.own)
    console.print()
    for each in found.recommendations:
        console.print(text(each.sentence))
    console.print(text("These are recommendations; the publisher decides.", style="dim"))


def show_comparison(found: Comparison, *, verbose: bool = False) -> None:
    """Show the two purposes first, then the cost of each algorithm; ``verbose`` adds its loss in every measure."""
    answers = sorted((e for e in found if e.outcome == "found"), key=lambda e: e.loss[found.objective])
    asked = any(e.query_error is not None for e in answers)
    head = ("algorithm", found.objective, "classes", "suppressed", *["query error"] * asked, "time", "memory", "")
    effort = Columns(*head, texts=(0, len(head) - 1))
    for entry in answers:
        effort.add(
            entry.algorithm,
            number(entry.loss[found.objective]),
            number(entry.classes or 0),
            number(entry.suppressed or 0),
            *[f"{(entry.query_error or {}).get('median', 0):.1%}"] * asked,
            f"{entry.seconds or 0:.2f} s",
            "–" if entry.memory is None else f"{entry.memory:,.0f} MB",
            worth(entry, found.objective),
        )
    for entry in found.purposes:
        if entry.outcome == "found":
            console.print(text(f"{_PURPOSES[entry.purpose]} {_cost(entry, found.objective)}", style="bold"))
    if any(entry.outcome == "found" for entry in found.purposes):
        console.print()
    if answers:
        effort.show(console)
    console.print(text(f"{counted(found.records, 'record')}; the smallest {found.objective} first."))
    if answers and verbose:
        console.print()
        lost = Columns("algorithm", *answers[0].loss)
        for entry in answers:
            lost.add(entry.algorithm, *(compact(value) for value in entry.loss.values()))
        lost.show(console)
        for entry in answers:
            if entry.claim:
                console.print(text(f"{entry.algorithm} proved: {entry.claim}."))
    for entry in (*found.purposes, *found):
        if entry.outcome != "found":
            console.print(text(f"{entry.name}: {entry.outcome}. {entry.reason}", style="yellow"))


_PURPOSES = {
    "tables": "For tables, one level per column (optimal):",
    "analysis": "For analysis, each class separately (local):",
    None: "",
}


def _cost(entry: Entry, objective: str) -> str:
    gone = f", {counted(entry.suppressed, 'record')} suppressed" if entry.suppressed else ""
    return f"{objective} {number(entry.loss[objective])} in {counted(entry.classes or 0, 'class')}{gone}."


def compact(value: float) -> str:
    """Format with three digits and a letter for the power of a thousand."""
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if 10**power <= abs(value) < 10 ** (power + 3):
            return f"{value / 10**power:.3g} {letter}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"


def show_inspection(found: Inspection, notes: Sequence[str], output: Path | None) -> None:
    """Show the decisions to make first, the columns with their suggested roles, then how unique records are."""
    persons = f"; {found.entity!r} identifies people, and some have several records" if found.entity else ""
    console.print(text(f"{number(found.records)} records{persons}", style="bold"))
    if found.decisions:
        console.print(text("Decide first:"))
        for decision in found.decisions[:3]:
            console.print(text(f"  {decision.sentence}"))
        console.print(text("  Use --known a,b or --sensitive x,y, or edit the policy.\n"))
    table = Columns("column", "kind", "distinct", "nulls", "role", "sure", "why", texts=(0, 1, 4, 5, 6))
    for column in found.columns:
        table.add(
            column.name,
            column.kind,
            number(column.distinct),
            number(column.nulls),
            column.role,
            column.sure,
            column.why,
        )
    table.show(console)
    console.print()
    sets = Columns("unique by", "unique records", "share", "distinct", "separation")
    for size in (1, 2, 3):
        for separation in found.strongest(size, 3):
            _separation_row(sets, separation)
    sets.show(console)
    for sentence in found.keeping.sentences if found.keeping else ():
        console.print(text(sentence))
    for note in notes:
        console.print(text(f"Note: {note}", style="yellow"))
    if output is not None:
        console.print(text(f"\nPolicy written to {output}: review it, edit it, then run"))
        console.print(text(f"  shoal anonymize DATA -p {output} -o release.csv"))
    else:
        console.print(text("\nAdd -o policy.toml to write a policy that you can edit and run."))


def show_hierarchy(found: Preview, most: int, saved: Path | None) -> None:
    """Show the levels of a hierarchy with their labels, and the policy line that names it."""
    values = f"{counted(len(found.hierarchy.leaves), 'value')} in {counted(found.records, 'record')}"
    nulls = f", {number(found.missing)} without a value" if found.missing else ""
    console.print(text(f"{found.column}: {values}{nulls}", style="bold"))
    if found.told:
        console.print(text(f"Read as {found.told}."))
    table = Columns("level", "labels", "fewest records", "labels with their records", texts=(3,))
    for level in found.levels:
        pairs = [(label, n) for label, n in zip(level.labels, level.records, strict=True) if n]
        shown = ", ".join(f"{label} ({number(n)})" for label, n in pairs[:most])
        more = f", and {number(len(pairs) - most)} more" if len(pairs) > most else ""
        table.add(str(level.number), number(len(level.labels)), number(level.smallest), shown + more)
    table.show(console)
    console.print(text("\nIn a policy:"))
    console.print(text(f"  {found.policy_line(None if saved is None else saved.name)}"))


def _separation_row(table: Columns, separation: Separation) -> None:
    table.add(
        ", ".join(separation.columns),
        number(separation.unique),
        share(separation.unique, separation.records),
        share(separation.distinct, separation.records),
        share(separation.separation_ratio, 1),
    )


def show_demo(result: Demo, folder: Path) -> None:
    """Show the attack before and after, one patient in both releases, and where the files were written."""
    question = f"A hospital has {number(result.patients)} patients. Without their names, is the table safe?"
    console.print(text(question, style="bold"))
    console.print(text("An intruder links it to a voter list by birth date, ZIP and sex:\n"))
    table = Columns("voters", "before", "for tables", "for analysis")
    for row, of in _LINKAGE_ROWS.items():
        table.add(row, *(of(link) for link in (result.before, result.after, result.after_analysis)))
    table.show(console)
    asked = " and ".join(verdict.asked for verdict in result.release.verdicts.verdicts)
    console.print(text(f"\nIn between, the table was anonymized twice, each time with {asked}. One patient:\n"))
    quasi = result.release.policy.quasi
    patient = Columns("", *quasi, "loss", texts=range(len(quasi) + 1))
    losses = dict(zip(result.patient, (0.0, result.release.loss["loss"], result.analysis.loss["loss"]), strict=True))
    for name, cells in result.patient.items():
        patient.add(name, *(shown(cells[column], 28) for column in quasi), number(losses[name]))
    patient.show(console)
    console.print()
    for name, release in (("For tables", result.release), ("For analysis", result.analysis)):
        kind = "one level per column" if release is result.release else "each class has its own labels and sets"
        console.print(text(f"{name}: {kind}; {gone(release)[:1].lower()}{gone(release)[1:]}"))
    notes = counted(len(result.certificate["warnings"]), "note")
    console.print(text(f"{notes} to read: in {folder / CERTIFICATE} and in the report."))
    console.print(text(f"Written and verified: {folder / RELEASE}, {folder / ANALYSIS}"))
    console.print(text(f"Policies: {folder / POLICY_FILE}, {folder / ANALYSIS_FILE}"))
    console.print(text(f"{_BESIDE['report']}: {folder / REPORT}"))


_LINKAGE_ROWS: dict[str, Callable[[Linkage], str]] = {
    "on the list": lambda link: number(link.people),
    "with at least one matching record": lambda link: number(link.matched),
    "with exactly one": lambda link: number(link.singled_out),
    "  of them, correctly named": lambda link: number(link.named),
    "best chance of a guess": lambda link: "none" if link.chance == 0 else _chance(link),
}


def _chance(link: Linkage) -> str:
    return f"1 in {round(1 / link.chance)}"
