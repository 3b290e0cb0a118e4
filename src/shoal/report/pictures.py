"""The charts of a release, each with a title and a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.alternatives.dominance import beaten
from shoal.alternatives.recommend import asked_for
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
    policy_point = None if frontier is None else asked_for(release.policy, frontier)
    groups = groups_of(release.attacks if attacks is None else attacks)
    return Charts(pictures(release, summary(release, columns), frontier, policy_point, groups))


def groups_of(attacks: Attacks | Sequence[Risk] | None) -> list[Group]:
    """Group attacks: linkage to people first, then each sensitive column."""
    by_column: dict[str | None, list[Risk]] = {}
    for risk in attacks or ():
        by_column.setdefault(risk.column, []).append(risk)
    return [
        Group("Linking records to people" if column is None else f"Disclosure of {column}", tuple(risks))
        for column, risks in by_column.items()
    ]


def worst_class(worst: Worst | None) -> str:
    """Describe a class by its released labels; a class of one person is not described."""
    if worst is None:
        return "all classes are equal"
    if not worst.labels:
        return "not shown: a single person"
    labels = [f"{name} {label}" for name, label in worst.labels if label != TOP]
    hidden = len(worst.labels) - len(labels)
    rest = f"all else {TOP}" if labels else f"{TOP} in every column"
    return f"{', '.join(labels + [rest] * (hidden > 0))} ({format_count(worst.records, 'record')})"


def pictures(
    release: Release, contents: Summary, frontier: Frontier | None, policy_point: int | None, groups: Sequence[Group]
) -> dict[str, Chart]:
    """Return the charts of a report by section."""
    unique, unit = contents.bins[0], counted_unit(release.policy)
    drawn = {
        "risk": Chart(
            risk_plot(contents.bins, unit),
            "risk-chart",
            "Records by class size, before and after",
            f"Unique: {format_share(unique.before, 1)} of the records before, {format_share(unique.after, 1)} after.",
        ),
        "sizes": Chart(
            size_plot(contents.bins, unit),
            "size-chart",
            "Classes of the release by size",
            f"{format_count(release.classes, 'class')}; the smallest has "
            f"{format_count(int(release.measured['k']), unit)}.",
        ),
        "columns": Chart(
            loss_plot(contents.columns),
            "loss-chart",
            "Loss of each column",
            _most_lost(contents.columns),
        ),
    }
    if picture := _search_chart(contents):
        drawn["search"] = picture
    for i, distribution in enumerate(contents.sensitive[:3]):
        for number, skewed in enumerate(distribution.classes):
            drawn[f"sensitive-{i}-{number}"] = Chart(
                distribution_plot(distribution, number),
                f"sensitive-{i}-{number}",
                f"{distribution.column}: the release and the class {worst_class(skewed.worst)}",
                _stands_out(distribution, skewed),
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
            frontier_plot(frontier, policy_point, "this policy"),
            "frontier-chart",
            f"{frontier.objective} against risk",
            frontier_in_words(frontier, policy_point),
        )
    return drawn


def _most_lost(columns: Sequence[Fate]) -> str:
    highest, lowest = (extreme(columns, key=lambda column: column.loss) for extreme in (max, min))
    if highest.loss == lowest.loss:
        return f"The loss of every column is {format_share(highest.loss, 1)}."
    return (
        f"{highest.name} has the largest loss, {format_share(highest.loss, 1)}; {lowest.name} the smallest, "
        f"{format_share(lowest.loss, 1)}."
    )


def _stands_out(distribution: Distribution, skewed: Skewed) -> str:
    """Return the value that is most over-represented in the class."""
    i = max(range(len(distribution.values)), key=lambda i: skewed.shares[i] - distribution.release[i])
    inside, whole = format_share(skewed.shares[i], 1), format_share(distribution.release[i], 1)
    return f"{distribution.values[i]}: {inside} of this class, {whole} of the release."


def _most_beyond(risks: Sequence[Risk]) -> str:
    worst = max(risks, key=lambda risk: risk.above)
    control = 0.0 if worst.control is None else worst.control.share
    comparison = (
        f"{worst.name} succeeded in {format_share(worst.share, 1)} of the attempts, {format_share(control, 1)} "
        "without the release"
    )
    return (
        f"No attack succeeded more often than without the release: {comparison}."
        if worst.above <= 0
        else f"Most successful: {comparison}."
    )


def frontier_in_words(frontier: Frontier, policy_point: int | None) -> str:
    """Describe a frontier: its releases, those that another one dominates, and the policy's own."""
    solved = sum(point.feasible is True for point in frontier)
    worse = format_number(sum(beaten(frontier)))
    sentence = f"{format_count(solved, 'release')}; {worse} of them dominated by another release."
    point = None if policy_point is None else frontier.points[policy_point]
    if point is None or point.loss is None or point.risk is None:
        return sentence
    return (
        f"{sentence} This policy: {frontier.objective} {format_number(point.loss)} at a risk of "
        f"{format_share(point.risk, 1)}."
    )


def _search_chart(contents: Summary) -> Chart | None:
    """Return the lattice, a slice of it, or the partition."""
    if contents.lattice:
        safe = sum(node.state != "unsafe" for node in contents.lattice)
        height = next((node.height for node in contents.lattice if node.state == "chosen"), 0)
        described = (
            f"{format_number(safe)} of {format_number(len(contents.lattice))} nodes satisfy the policy; the chosen one "
            "has height"
        )
        return Chart(
            lattice_plot(contents.lattice), "lattice-chart", "The generalization lattice", f"{described} {height}."
        )
    if contents.slice is not None:
        across, up, nodes = contents.slice.across, contents.slice.up, contents.slice.nodes
        safe = sum(node.state != "unsafe" for node in nodes)
        return Chart(
            slice_plot(contents.slice),
            "slice-chart",
            f"The generalization lattice in {across} and {up}",
            f"{format_number(safe)} of {format_number(len(nodes))} nodes satisfy the policy.",
        )
    if contents.partition is not None:
        part = contents.partition
        return Chart(
            partition_plot(part),
            "partition-chart",
            f"Classes by {part.across} and {part.up}",
            f"{format_count(len(part.boxes), 'rectangle')}; the stronger the colour, the more records.",
        )
    return None
