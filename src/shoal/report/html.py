"""A release as one HTML file: no script, no network, every text escaped.

Three answers and one chart come first, then the details; technical details are collapsed. The charts are drawn in
advance and embedded as SVG, each with a description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from shoal import __version__
from shoal.alternatives.recommend import asked_for
from shoal.attacks.read_cache import shared_reads
from shoal.attacks.risk import Attacks, Risk
from shoal.attacks.tolerances import tolerances
from shoal.errors import OutputError
from shoal.findings import with_attacks
from shoal.models.finding import Finding, headline, publication
from shoal.models.verdict import outcome_of_all
from shoal.policy import Policy
from shoal.release.certificate import neutral
from shoal.report.essentials import SHARES, essentials, proof, suppression_sentence
from shoal.report.fates import label_threshold
from shoal.report.intrusion import stories_within_budget, within_budget
from shoal.report.lettering import style_rules
from shoal.report.pictures import groups_of, pictures, worst_class
from shoal.report.rows import attack_grid, column_grid, frontier_grid, frontier_remarks, requirement_grid, size_words
from shoal.report.summary import Summary, summary
from shoal.report.wording import counted_unit
from shoal.text.figures import format_count, format_interval, format_number, format_share, visible
from shoal.text.showing import shows

if TYPE_CHECKING:
    from shoal.alternatives.frontier import Frontier
    from shoal.models.verdict import Verdict
    from shoal.release import Release

SECTIONS = {
    "columns": "Information loss by column",
    "requirements": "Requirements",
    "attacks": "Attacks",
    "sensitive": "Sensitive values in the most skewed classes",
    "frontier": "Cost of stricter requirements",
    "experts": "Technical details",
}
IN_NOTEBOOKS = ("sizes", "columns")  # charts of figures that the page has as tables


@shows("Release", "page")
@shared_reads()
def render_report(
    release: Release,
    *,
    certificate: Mapping[str, Any] | None = None,
    frontier: Frontier | None = None,
    attacks: Sequence[Risk] | None = None,
    columns: Sequence[str] = (),
    originals: bool = False,
) -> str:
    """Render the page; without attacks, the release is attacked within a fixed amount of work."""
    contents = summary(release, columns, originals=originals)
    attack_results = _own_attacks(release) if attacks is None else _attacks(attacks, release.policy)
    proof = release.certificate if certificate is None else _own_certificate(release, certificate)
    groups = groups_of(attack_results)
    policy_point = None if frontier is None else asked_for(release.policy, frontier)
    fields = _fields(release, contents, attack_results, proof)
    fields |= {
        "attacks": attack_results,
        "groups": groups,
        "frontier": frontier,
        "own": policy_point,
        "originals": originals,
    }
    fields["stories"] = stories_within_budget(release) if attacks is None else ()
    absent = {
        "attacks": not (attack_results.risks or attack_results.left_out),
        "sensitive": not contents.sensitive,
        "frontier": frontier is None,
    }
    fields["sections"] = {name: heading for name, heading in SECTIONS.items() if not absent.get(name)}
    drawn = pictures(release, contents, frontier, policy_point, groups)
    page_pictures = {name: picture for name, picture in drawn.items() if name not in IN_NOTEBOOKS}
    fields["charts"] = {name: picture.drawn() for name, picture in page_pictures.items()}
    fields["pictures"] = drawn
    return environment().get_template("report.html").render(fields)


def _own_attacks(release: Release) -> Attacks:
    """Return the release's own attacks, or those that a report runs by itself."""
    return within_budget(release) if release.attacks is None else release.attacks


def _attacks(risks: Sequence[Risk], policy: Policy) -> Attacks:
    return risks if isinstance(risks, Attacks) else Attacks(tuple(risks), tolerances=tolerances(policy))


def _own_certificate(release: Release, certificate: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the certificate that ``save`` returned, after checking that it belongs to this release."""
    expected = release.certificate
    matching = all(certificate.get(name) == expected[name] for name in ("policy", "requirements", "measured"))
    if not matching or certificate.get("input", {}).get("records") != expected["input"]["records"]:
        raise OutputError(
            "the certificate does not belong to this release", "pass the certificate returned by its save method"
        )
    return certificate


@cache
def environment() -> jinja2.Environment:
    """Return the template environment, which escapes every text of the data."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("shoal.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,  # not Markup, which is ours
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=format_number,
        counted=format_count,
        percent=lambda value: format_share(value, 1),
        interval=format_interval,
        worst=worst_class,
        capital=_capital,
        lower_first=_lower_first,
        attack_grid=attack_grid,
        frontier_grid=frontier_grid,
        frontier_remarks=frontier_remarks,
    )
    return environment


def _fields(
    release: Release, contents: Summary, attacks: Attacks | None, certificate: Mapping[str, Any]
) -> dict[str, Any]:
    limits = [*(limit.judge(attacks) for limit in release.policy.limits), *_of_results(release)]
    findings: Sequence[Finding] = [Finding.from_dict(line) for line in certificate["findings"]]
    if attacks is not None and attacks is not release.attacks:
        findings = with_attacks(findings, attacks, release.policy)
    worst = [f"Worst class: {worst_class(each)}" for each in contents.worst]
    outcome = outcome_of_all([release.verdicts.outcome, *(limit.outcome for limit in limits)])
    return {
        "title": "Release report",
        "unit": counted_unit(release.policy),
        "answers": essentials(release, contents.columns, attacks),
        "gone": suppression_sentence(release),
        "version": __version__,
        "created": certificate["created"],
        "verdict": sentence(release, attacks),
        "release": release,
        "told": contents,
        "columns": column_grid(contents.columns),
        "requirements": requirement_grid([*_of_classes(release), *limits], release.verdicts.identifiers, worst),
        "limits": limits,
        "shared": label_threshold(release.policy),
        "proof": proof(release.recoding),
        "findings": findings,
        "headline": headline(outcome, findings),
        "publication": publication(outcome, findings),
        "hash": certificate["output"]["sha256"][:12],
        "scale": " (0: every value kept, 1: all suppressed)" if release.policy.release.objective in SHARES else "",
        "policy": neutral(release.policy).to_toml(),
        "certificate": compact_json(certificate),
        **style(),
    }


def style() -> dict[str, Any]:
    """Return the variables of the style sheet."""
    return {"colours": Markup(style_rules())}


def _of_classes(release: Release) -> tuple[Verdict, ...]:
    """Return the verdicts on classes; those on attacks come from the attacks that are shown."""
    return release.verdicts.verdicts[: len(release.policy.models)]


def _of_results(release: Release) -> tuple[Verdict, ...]:
    """Return the verdicts on forbidden results, which come last."""
    return release.verdicts.verdicts[len(release.policy.models) + len(release.policy.limits) :]


def sentence(release: Release, attacks: Attacks | None = None) -> str:
    """Return the verdict as a sentence; for limits on attacks, it uses those given or the release's own."""
    judged, attacks = release.verdicts, release.attacks if attacks is None else attacks
    size = size_words(judged)
    verdicts = [*_of_classes(release), *(limit.judge(attacks) for limit in release.policy.limits)]
    verdicts += _of_results(release)
    failed = sum(verdict.outcome == "fails" for verdict in verdicts)
    n = len(verdicts)
    if failed or judged.identifiers:
        left = f"; {format_count(len(judged.identifiers), 'identifier')} not removed" if judged.identifiers else ""
        return (
            f"This release does not satisfy its policy: {failed} of {format_count(n, 'requirement')} failed, "
            f"{size}{left}."
        )
    if unknown := sum(verdict.outcome == "unknown" for verdict in verdicts):
        untold = f"{unknown} of {format_count(n, 'requirement')} cannot be determined"
        return f"Whether this release satisfies its policy cannot be determined: {untold}, {size}."
    if not judged.records:
        return "This release satisfies its policy because it contains no records."
    statement = "the requirement holds" if n == 1 else f"all {n} requirements hold"
    return f"This release satisfies its policy: {statement} for {size}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def compact_json(value: Any, indent: int = 0, width: int = 132) -> str:
    """Format JSON with one line for everything that fits on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= width or not isinstance(value, dict | list) or not value:
        return line
    inner, pad = indent + 2, " " * (indent + 2)
    if isinstance(value, dict):
        parts = [
            f"{pad}{json.dumps(name, ensure_ascii=False)}: {compact_json(part, inner, width)}"
            for name, part in value.items()
        ]
    else:
        parts = [pad + compact_json(part, inner, width) for part in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, ",\n".join(parts), " " * indent + last])
