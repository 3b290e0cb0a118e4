"""Results as notebooks show them: small HTML tables, every text escaped, in the colours of the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from shoal.report.formats import number

if TYPE_CHECKING:
    from shoal.figures import Figures
    from shoal.release import Release
    from shoal.verify import Verdicts


def figures_html(figures: Figures) -> str:
    """A row per figure; where columns are sensitive, one column for each of them."""
    names = list(figures.columns)
    rows = [
        [name, number(value), *(number(of[name]) if name in of else "" for of in figures.columns.values())]
        for name, value in figures.items()
    ]
    return _table(["figure", "worst" if names else "value", *names], rows)


def verdicts_html(verdicts: Verdicts) -> str:
    """A row per requirement, and the verdict in a sentence."""
    rows = [
        [v.asked, f"{v.figure} = {number(v.worst)}", number(v.classes), number(v.records), _mark(v.holds)]
        for v in verdicts.verdicts
    ]
    rows += [[f"identifier {name}", "still there", "", "", _mark(False)] for name in verdicts.identifiers]
    size = f"{number(verdicts.records)} records in {number(verdicts.classes)} classes"
    verdict = "The policy holds" if verdicts.hold else "The policy does not hold"
    return _table(["requirement", "found", "classes at fault", "records", ""], rows, f"{verdict}: {size}.")


def release_html(release: Release) -> str:
    """The verdicts, then what was done to the columns."""
    rows = [
        [h.column, _level(release.levels[h.column]), str(h.number_of_top)]  # no value of a record: a notebook is shared
        for h in release.recoding.hierarchies
    ]
    objective = release.policy.release.objective
    proof = "proved to be the least" if release.recoding.proved else "not proved to be the least"
    caption = (
        f"{objective} {number(release.loss[objective])}, {proof}; "
        f"{number(release.suppressed)} of {number(release.engine.n_records)} records suppressed."
    )
    return verdicts_html(release.verdicts) + _table(["column", "level", "of"], rows, caption)


def _level(level: int | None) -> str:
    return "mixed" if level is None else str(level)


def _mark(holds: bool) -> str:
    return "holds" if holds else "fails"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    left, right = Markup(' style="text-align: left"'), Markup(' style="text-align: right"')
    parts = [Markup("<table>")]
    if caption:
        parts.append(Markup("<caption{}>{}</caption>").format(left, caption))
    cells = [Markup('<th scope="col"{}>{}</th>').format(left if i == 0 else right, name) for i, name in enumerate(head)]
    parts += [Markup("<thead><tr>"), *cells, Markup("</tr></thead><tbody>")]
    for first, *others in rows:
        parts.append(Markup('<tr><th scope="row"{}>{}</th>').format(left, first))
        parts += [Markup("<td{}>{}</td>").format(right, text) for text in others]
        parts.append(Markup("</tr>"))
    parts.append(Markup("</tbody></table>"))
    return str(Markup("").join(parts))
