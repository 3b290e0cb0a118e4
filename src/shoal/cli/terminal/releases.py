"""Releases on a terminal: what was written, what it costs, and a replay on new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shoal.cli.columns import Columns, console, text
from shoal.cli.terminal.verdicts import (
    policy_style,
    show_answers,
    show_check,
    show_findings,
    show_headline,
    show_limits,
    show_verdicts,
)
from shoal.engines.base import Rows
from shoal.models.finding import Finding
from shoal.release import Release
from shoal.release.replay import Replay
from shoal.report.essentials import essentials, loss_sentence, proof
from shoal.report.fates import fates
from shoal.report.rows import level_words, size_words
from shoal.text.figures import format_number

WRITTEN = {
    "certificate": "Certificate",
    "receipt": "Receipt (keep it with the data, do not publish it)",
    "report": "Report (open it in a browser)",
    "codebook": "Codebook (it may be published with the release)",
    "recoding": "Recoding (keep it with the data, do not publish it)",
}


def show_release(
    release: Release,
    output: str | Path,
    about_file: Sequence[Finding] = (),
    companions: Mapping[str, Path | None] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Show the result in about ten lines; ``verbose`` adds every figure.

    ``about_file`` are findings about the written file; ``beside``: where the certificate, report and recoding were
    written, if they were.
    """
    show_headline(release.verdicts)
    if verbose:
        _show_details(release)
    show_brief(release)
    findings = (*release.findings, *about_file)
    show_findings(findings)
    console.print(text(f"Written and verified: {output}"))
    for kind, path in (companions or {}).items():
        if path is not None:
            console.print(text(f"{WRITTEN[kind]}: {path}"))


def show_brief(release: Release) -> None:
    """Show the policy verdict, the three answers, and the information loss."""
    verdicts = release.verdicts
    requirements = "; ".join(verdict.asked for verdict in verdicts.verdicts)
    console.print(text(f"{verdicts.sentence}: {requirements}; {size_words(verdicts)}.", style=policy_style(verdicts)))
    if release.attacks is not None:
        green = verdicts.publication == "ready"
        show_limits(verdicts.verdicts[len(release.policy.models) :][: len(release.policy.limits)], green=green)
        show_answers(release.attacks, green=green)
    original = release.counted.table
    columns = fates(release, original, release.recoding.parts(original))
    answers = essentials(release, columns, release.attacks, labels=True)
    for answer in (answers.identification, answers.remaining, answers.inference):
        console.print(text(answer))
    console.print(text(loss_sentence(release)))
    if release.recoding.hiding is not None:
        console.print(text(f"{release.recoding.hiding.sentence} Do not publish this line."))


def _show_details(release: Release) -> None:
    """Show the verdicts, the levels and every loss."""
    show_verdicts(release.verdicts)
    console.print()
    levels = Columns("column", "level", "of", "a released value", texts=(0, 3))
    for hierarchy in release.recoding.hierarchies:
        name = hierarchy.column
        levels.add(name, level_words(release.levels[name]), str(hierarchy.number_of_top), _example(release, name))
    levels.show(console)
    console.print()
    _show_losses(release)
    recoding = release.recoding
    looked = (
        ""
        if recoding.n_nodes is None
        else f"; {format_number(recoding.n_evaluated)} of {format_number(recoding.n_nodes)} nodes visited"
    )
    console.print(text(f"{recoding.algorithm}: {release.policy.release.objective} {proof(recoding)}{looked}."))
    if recoding.claim:
        console.print(text(f"Proved: {recoding.claim}."))
    n = release.counted.n_records
    fate = "dropped" if release.policy.release.suppressed == "drop" else "kept as *"
    console.print(text(f"{format_number(release.suppressed)} of {format_number(n)} records suppressed ({fate})."))
    console.print()


def _example(release: Release, column: str) -> str:
    """Return a released value that most records share; a label, not a record."""
    if (groups := release.rows.counted) is not None:
        sums = groups.table.group_by([column]).aggregate([(groups.weight, "sum")])
        values, n = sums[column].to_pylist(), sums[f"{groups.weight}_sum"].to_pylist()
    elif isinstance(release.rows, Rows):
        counts = release.rows.table[column].value_counts()
        values, n = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    texts = ("(missing)" if value is None else str(value) for value in values)
    common = max(zip(n, texts, strict=True))
    return common[1] if len(common[1]) <= 40 else common[1][:39] + "…"


def _show_losses(release: Release) -> None:
    table = Columns("loss", "value")
    for name, value in release.loss.items():
        table.add(name, format_number(value))
    table.show(console)
    console.print()


def show_replay(replay: Replay, output: Path | str) -> None:
    """Show the result of a replay on new rows."""
    show_check(replay.verdicts)
    console.print()
    reasons = {
        "have values unknown to the recoding": replay.unknown,
        "have suppressed tuples": replay.suppressed,
        "would violate the policy": replay.failing,
    }
    n = replay.rows.n_records + replay.held_back
    console.print(text(f"{format_number(replay.held_back)} of {format_number(n)} records held back."))
    for reason, records in reasons.items():
        if records:
            console.print(text(f"Note: {format_number(records)} {reason}", style="yellow"))
    console.print(text(f"Written and verified: {output}"))


def show_keys(private: Path, public: Path, fingerprint: str, *, locked: bool) -> None:
    """Show a new key pair."""
    lock = "protected by a password" if locked else "without a password"
    console.print(text(f"Private key, {lock}, for anonymize --sign: {private}"))
    console.print(text(f"Public key, for publication and verify --key: {public}"))
    console.print(text(f"Its SHA-256, with which others can check that it is yours: {fingerprint}"))
