"""A release as one HTML file: no script, no network, every text escaped.

The charts are drawn beforehand and stand in the page as SVG, each with a description and, where it shows figures, the
same figures as a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from shoal import __version__
from shoal.report import charts
from shoal.report.formats import number, share
from shoal.report.summary import Summary, Worst, shared, summary

if TYPE_CHECKING:
    from shoal.release import Release
    from shoal.sweep import Frontier

SECTIONS = {
    "requirements": "What was asked and what was found",
    "risk": "Risk before and after",
    "sizes": "How large the classes are",
    "columns": "What the columns lost",
    "search": "How the answer was chosen",
    "sensitive": "Sensitive values in the release and in its most skewed classes",
    "attacks": "Attacks",
    "frontier": "What other promises would cost",
    "policy": "The policy",
    "certificate": "The certificate",
}


def rendered(
    release: Release,
    *,
    certificate: Mapping[str, Any] | None = None,
    frontier: Frontier | None = None,
    attacks: Any = None,
) -> str:
    """The page."""
    told = summary(release)
    attacks = attacks or release.attacks
    fields = _fields(release, told, certificate or release.certificate)
    fields["attacks"], fields["frontier"] = attacks, frontier
    fields["charts"] = _charts(release, told, frontier, attacks)
    return _environment().get_template("report.html").render(fields)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("shoal.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percent=lambda value: share(value, 1), worst=_worst)
    return environment


def _fields(release: Release, told: Summary, certificate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sections": SECTIONS,
        "title": "Release report",
        "version": __version__,
        "created": certificate["created"],
        "verdict": sentence(release),
        "holds": release.verdicts.hold,
        "release": release,
        "told": told,
        "requirements": list(zip(release.verdicts.verdicts, told.worst, strict=True)),
        "shared": shared(release.policy),
        "proof": _proof(release),
        "safe": sum(node.state != "unsafe" for node in told.lattice),
        "policy": release.policy.to_toml(),
        "certificate": json.dumps(certificate, indent=2, ensure_ascii=False),
        "colours": Markup(charts.style_rules()),
    }


def sentence(release: Release) -> str:
    """The verdict."""
    found = release.verdicts
    size = f"{_counted(found.records, 'record')} in {_counted(found.classes, 'class')}"
    if not found.hold:
        return f"This release does not keep its policy: {size}."
    n = len(found.verdicts)
    asked = "the requirement holds" if n == 1 else f"all {n} requirements hold"
    k = int(release.measured["k"])
    crowd = f", and everybody is one of at least {number(k)}" if k > 1 else ""
    return f"This release keeps its policy: {asked} for {size}{crowd}."


def _counted(n: int, word: str) -> str:
    return f"{number(n)} {word if n == 1 else word + ('es' if word.endswith('s') else 's')}"


def _proof(release: Release) -> str:
    recoding = release.recoding
    if recoding.bound is not None:
        return f"the best in the time given; none has a loss below {number(recoding.bound)}"
    return "proved to be the least" if recoding.proved else "not proved to be the least"


def _worst(found: Worst | None) -> str:
    if found is None:
        return "all classes alike"
    if not found.labels:
        return "not shown: one person alone"
    labels = ", ".join(f"{name} {label}" for name, label in found.labels)
    return f"{labels} ({_counted(found.records, 'record')})"


def _charts(release: Release, told: Summary, frontier: Frontier | None, attacks: Any) -> dict[str, Markup]:
    unique = told.bins[0]
    drawn = {
        "risk": charts.inlined(
            charts.risk_chart(told.bins),
            "risk-chart",
            "Records by the size of their class, before and after",
            f"Of the original, {share(unique.before, 1)} of the records were alone in their class; "
            f"of the release, {share(unique.after, 1)}.",
        ),
        "sizes": charts.inlined(
            charts.size_chart(told.bins),
            "size-chart",
            "Classes of the release by size",
            f"{number(release.classes)} classes; the smallest has {number(release.measured['k'])} people.",
        ),
        "columns": charts.inlined(
            charts.loss_chart(told.columns),
            "loss-chart",
            "Loss of each column",
            "; ".join(f"{column.name}: {share(column.loss, 1)}" for column in told.columns) + ".",
        ),
    }
    if told.lattice:
        safe = sum(node.state != "unsafe" for node in told.lattice)
        drawn["search"] = charts.inlined(
            charts.lattice_chart(told.lattice),
            "lattice-chart",
            "The generalization lattice",
            f"{number(safe)} of {number(len(told.lattice))} nodes keep the policy; the chosen one is at height "
            f"{next((node.height for node in told.lattice if node.state == 'chosen'), 0)}.",
        )
    elif told.partition is not None:
        part = told.partition
        drawn["search"] = charts.inlined(
            charts.partition_chart(part.boxes, part.across, part.up),
            "partition-chart",
            f"Classes by {part.across} and {part.up}",
            f"{number(len(part.boxes))} rectangles; darker ones hold more records.",
        )
    for i, found in enumerate(told.sensitive[:3]):
        for place, skewed in enumerate(found.classes):
            drawn[f"sensitive-{i}-{place}"] = charts.inlined(
                charts.distribution_chart(found, place),
                f"sensitive-{i}-{place}",
                f"{found.column}: the release and the class {_worst(skewed.worst)}",
                f"Distance ({found.metric}) from the release: {number(skewed.distance)}.",
            )
    if attacks:
        drawn["attacks"] = charts.inlined(
            charts.attack_chart(list(attacks)),
            "attack-chart",
            "Attacks",
            "Dots: attempts that worked, with an interval of 95 %; ticks: how many would have without the release.",
        )
    if frontier is not None and any(point.feasible for point in frontier):
        drawn["frontier"] = charts.inlined(
            charts.frontier_chart(frontier),
            "frontier-chart",
            f"{frontier.objective} against risk",
            "One point per release that was solved for; the table has the figures.",
        )
    return drawn
