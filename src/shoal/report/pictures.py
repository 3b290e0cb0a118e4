"""The charts of a release, each with a title and a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.alternatives.recommend import asked_for, beaten
from shoal.attacks.risk import Attacks, Risk
from shoal.hierarchies.hierarchy import TOP
from shoal.report.drawings import (
    attack_plot,
    distribution_plot,
    frontier_plot,
    lattice_plot,
    loss_plot,
    partition_plot,
    risk_plot,
    size_plot,
    slice_plot,
)
from shoal.report.fates import Fate
from shoal.report.summary import Distribution, Skewed, Summary, Worst, summary
from shoal.report.svg import Chart
from shoal.report.wording import counted_unit
from shoal.text.figures import format_count, format_number, format_share
from shoal.text.showing import shows

if TYPE_CHECKING:
    from shoal.alternatives.frontier import Frontier
    from shoal.release import Release


class Charts(dict[str, Chart]):
    """Charts by name, displayed together in a notebook."""

    def _repr_html_(self) -> str:
        return "".join(chart.figure(name) for name, chart in self.items())


@dataclass(frozen=True)
class Group:
    """Attacks with the same target."""

    heading: str
    risks: tuple[Risk, ...]


@shows("Release", "charts")
def charts_of(
    release: Release,
    *,
    frontier: Frontier | None = None,
    attacks: Sequence[Risk] | None = None,
    columns: Sequence[str] = (),
) -> Charts:
    """Return the charts of a report by section."""
    own = None if frontier is None else asked_for(release.policy, frontier)
    groups = groups_of(release.attacks if attacks is None else attacks)
    return Charts(pictures(release, summary(release, columns), frontier, own, groups))


def groups_of(attacks: Attacks | Sequence[Risk] | None) -> list[Group]:
    """Group attacks: linkage to people first, then each sensitive column."""
    by_column: dict[str | None, list[Risk]] = {}
    for risk in attacks or ():
        by_column.setdefault(risk.column, []).append(risk)
    return [
        Group("Linking records to people" if column is None else f"Disclosure of {column}", tuple(risks))
        for column, risks in by_column.items()
    ]


def worst_class(found: Worst | None) -> str:
    """Describe a class by its released labels; a class of one person is not described."""
    if found is None:
        return "all classes are equal"
    if not found.labels:
        return "not shown: a single person"
    told = [f"{name} {label}" for name, label in found.labels if label != TOP]
    hidden = len(found.labels) - len(told)
    rest = f"all else {TOP}" if told else f"{TOP} in every column"
    return f"{', '.join(told + [rest] * (hidden > 0))} ({format_count(found.records, 'record')})"


def pictures(
    release: Release, told: Summary, frontier: Frontier | None, own: int | None, groups: Sequence[Group]
) -> dict[str, Chart]:
    """Return the charts of a report by section."""
    unique, one = told.bins[0], counted_unit(release.policy)
    drawn = {
        "risk": Chart(
            risk_plot(told.bins, one),
            "risk-chart",
            "Records by class size, before and after",
            f"Unique: {format_share(unique.before, 1)} of the records before, {format_share(unique.after, 1)} after.",
        ),
        "sizes": Chart(
            size_plot(told.bins, one),
            "size-chart",
            "Classes of the release by size",
            f"{format_count(release.classes, 'class')}; the smallest has "
            f"{format_count(int(release.measured['k']), one)}.",
        ),
        "columns": Chart(
            loss_plot(told.columns),
            "loss-chart",
            "Loss of each column",
            _most_lost(told.columns),
        ),
    }
    if picture := _search_chart(told):
        drawn["search"] = picture
    for i, found in enumerate(told.sensitive[:3]):
        for place, skewed in enumerate(found.classes):
            drawn[f"sensitive-{i}-{place}"] = Chart(
                distribution_plot(found, place),
                f"sensitive-{i}-{place}",
                f"{found.column}: the release and the class {worst_class(skewed.worst)}",
                _stands_out(found, skewed),
            )
    for i, group in enumerate(groups):
        drawn[f"attacks-{i}"] = Chart(
            attack_plot(group.risks),
            f"attack-chart-{i}",
            f"Attacks: {group.heading}",
            _most_beyond(group.risks),
        )
    if frontier is not None and any(point.feasible for point in frontier):
        drawn["frontier"] = Chart(
            frontier_plot(frontier, own, "this policy"),
            "frontier-chart",
            f"{frontier.objective} against risk",
            frontier_in_words(frontier, own),
        )
    return drawn


def _most_lost(columns: Sequence[Fate]) -> str:
    most, least = (of(columns, key=lambda column: column.loss) for of in (max, min))
    if most.loss == least.loss:
        return f"The loss of every column is {format_share(most.loss, 1)}."
    return (
        f"{most.name} has the largest loss, {format_share(most.loss, 1)}; {least.name} the smallest, "
        f"{format_share(least.loss, 1)}."
    )


def _stands_out(found: Distribution, skewed: Skewed) -> str:
    """Return the value that is most over-represented in the class."""
    i = max(range(len(found.values)), key=lambda i: skewed.shares[i] - found.release[i])
    inside, whole = format_share(skewed.shares[i], 1), format_share(found.release[i], 1)
    return f"{found.values[i]}: {inside} of this class, {whole} of the release."


def _most_beyond(risks: Sequence[Risk]) -> str:
    worst = max(risks, key=lambda risk: risk.above)
    control = 0.0 if worst.control is None else worst.control.share
    told = (
        f"{worst.name} succeeded in {format_share(worst.share, 1)} of the attempts, {format_share(control, 1)} "
        "without the release"
    )
    return (
        f"No attack succeeded more often than without the release: {told}."
        if worst.above <= 0
        else f"Most successful: {told}."
    )


def frontier_in_words(frontier: Frontier, own: int | None) -> str:
    """Describe a frontier: its releases, those that another one dominates, and the policy's own."""
    solved = sum(point.feasible is True for point in frontier)
    worse = format_number(sum(beaten(frontier)))
    told = f"{format_count(solved, 'release')}; {worse} of them dominated by another release."
    point = None if own is None else frontier.points[own]
    if point is None or point.loss is None or point.risk is None:
        return told
    return (
        f"{told} This policy: {frontier.objective} {format_number(point.loss)} at a risk of "
        f"{format_share(point.risk, 1)}."
    )


def _search_chart(told: Summary) -> Chart | None:
    """Return the lattice, a slice of it, or the partition."""
    if told.lattice:
        safe = sum(node.state != "unsafe" for node in told.lattice)
        height = next((node.height for node in told.lattice if node.state == "chosen"), 0)
        described = (
            f"{format_number(safe)} of {format_number(len(told.lattice))} nodes satisfy the policy; the chosen one "
            "has height"
        )
        return Chart(
            lattice_plot(told.lattice), "lattice-chart", "The generalization lattice", f"{described} {height}."
        )
    if told.slice is not None:
        across, up, nodes = told.slice.across, told.slice.up, told.slice.nodes
        safe = sum(node.state != "unsafe" for node in nodes)
        return Chart(
            slice_plot(told.slice),
            "slice-chart",
            f"The generalization lattice in {across} and {up}",
            f"{format_number(safe)} of {format_number(len(nodes))} nodes satisfy the policy.",
        )
    if told.partition is not None:
        part = told.partition
        return Chart(
            partition_plot(part),
            "partition-chart",
            f"Classes by {part.across} and {part.up}",
            f"{format_count(len(part.boxes), 'rectangle')}; the stronger the colour, the more records.",
        )
    return None
