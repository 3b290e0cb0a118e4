"""The demo on a terminal: the attack before and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shoal.cli.columns import Columns, console, text
from shoal.cli.terminal.releases import WRITTEN
from shoal.cli.terminal.verdicts import PUBLICATION_STYLES
from shoal.demo.linkage import Linkage
from shoal.demo.run import ANALYSIS, ANALYSIS_FILE, CERTIFICATE, POLICY_FILE, RELEASE, REPORT, Demo
from shoal.report.essentials import suppression_sentence
from shoal.report.fates import shortened_label
from shoal.text.figures import format_count, format_number


def show_demo(result: Demo, folder: Path) -> None:
    """Show the attack before and after, one patient in both releases, and where the files were written."""
    question = f"A hospital has {format_number(result.patients)} patients. Without their names, is the table safe?"
    console.print(text(question, style="bold"))
    console.print(text("An intruder links it to a voter list by birth date, ZIP and sex:\n"))
    table = Columns("voters", "before", "for tables", "for analysis")
    for row, figure in _LINKAGE_ROWS.items():
        table.add(row, *(figure(link) for link in (result.before, result.after, result.after_analysis)))
    table.show(console)
    requirements = " and ".join(verdict.asked for verdict in result.release.verdicts.verdicts)
    console.print(text(f"\nIn between, the table was anonymized twice, each time with {requirements}. One patient:\n"))
    quasi = result.release.policy.quasi
    patient = Columns("", *quasi, "loss", texts=range(len(quasi) + 1))
    losses = dict(zip(result.patient, (0.0, result.release.loss["loss"], result.analysis.loss["loss"]), strict=True))
    for name, cells in result.patient.items():
        patient.add(name, *(shortened_label(cells[column], 28) for column in quasi), format_number(losses[name]))
    patient.show(console)
    console.print()
    for name, release in (("For tables", result.release), ("For analysis", result.analysis)):
        kind = "one level per column" if release is result.release else "each class has its own labels and sets"
        console.print(
            text(f"{name}: {kind}; {suppression_sentence(release)[:1].lower()}{suppression_sentence(release)[1:]}")
        )
        console.print(text(release.headline, style=PUBLICATION_STYLES[release.publication]))
    findings = format_count(len(result.certificate["findings"]), "finding")
    console.print(text(f"{findings} to read: in {folder / CERTIFICATE} and in the report."))
    console.print(text(f"Written and verified: {folder / RELEASE}, {folder / ANALYSIS}"))
    console.print(text(f"Policies: {folder / POLICY_FILE}, {folder / ANALYSIS_FILE}"))
    console.print(text(f"{WRITTEN['report']}: {folder / REPORT}"))


_LINKAGE_ROWS: dict[str, Callable[[Linkage], str]] = {
    "on the list": lambda link: format_number(link.people),
    "with at least one matching record": lambda link: format_number(link.matched),
    "with exactly one": lambda link: format_number(link.singled_out),
    "  of them, correctly named": lambda link: format_number(link.named),
    "best chance of a guess": lambda link: "none" if link.chance == 0 else _chance(link),
}


def _chance(link: Linkage) -> str:
    return f"1 in {round(1 / link.chance)}"
