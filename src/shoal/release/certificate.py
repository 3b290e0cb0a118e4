"""The certificate of a release: the policy, the results and digests of the files, for anyone to read.

It must not disclose more about people than the release does. Figures that anyone can count in the release are exact.
Figures that depend on the original (losses, distances from its distribution, results of attacks) are functions of
hidden counts, and with all their digits they would disclose them: these figures have two digits, and of the losses only
the objective is included. The numbers of nodes and of visited nodes stay in the receipt, and so do file names. Digests
of unpublished files are keyed.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import __version__
from shoal.hierarchies.builders import File, Mask
from shoal.models import PopulationModel
from shoal.models.closeness import COMPARED
from shoal.models.finding import Finding
from shoal.policy import Policy
from shoal.policy.presets import PRESETS
from shoal.release.receipt import keyed
from shoal.text.jsonable import finite

if TYPE_CHECKING:
    from shoal.release import Release

SCHEMA = "shoal-certificate/3"
DIGITS = 2  # of figures that depend on unreleased data

# Figures that need more than the release: the population, persons (if a column identifies them), the original
# (if records were dropped).
OF_POPULATION = frozenset({"k_map", "presence", "population_uniqueness"})
OF_PERSONS = frozenset({"k", "uniques", "sample_uniqueness", "risk_max", "risk_mean"})
OF_HOUSEHOLDS = frozenset({"household_risk_max", "household_risk_mean"})
OF_ORIGINAL = frozenset({"t", "beta", "enhanced_beta", "delta", "gain"})
# Losses that depend only on the sizes of classes and the number of suppressed records.
OF_RELEASE = ("discernibility", "average-class")

_PARTS = ("numpy", "numba", "pyarrow", "duckdb")


def certificate_of(release: Release, output: str, created: str) -> dict[str, Any]:
    """Return the certificate of a release whose rows have the digest ``output``; plain values for JSON."""
    recoding, policy, counted = release.recoding, release.policy, release.counted
    statements = _Statements(release)
    certificate = {
        "schema": SCHEMA,
        "policy": neutral(policy).model_dump(mode="json", exclude_none=True),
        "input": {"hmac_sha256": keyed(release.key, "input", counted.fingerprint), "records": counted.n_records},
        "output": {"sha256": output, "records": release.rows.n_records, "suppressed": release.suppressed},
        "requirements": statements.requirements(),
        "measured": statements.measured(),
        "loss": statements.losses(),
        "levels": statements.levels(),
        "hierarchies": {
            name: keyed(release.key, f"hierarchy {name}", fingerprint)
            for name, fingerprint in recoding.fingerprints.items()
        },
        "search": {
            "algorithm": recoding.algorithm,
            "proved": recoding.proved,
            "bound": None if recoding.bound is None else rounded(recoding.bound),
            "claim": recoding.claim,
        },
        "attacks": None if release.attacks is None else _without_counts(release.attacks.as_dict()),
        "preset": _preset(policy),
        "seed": policy.release.seed,
        "publication": release.publication,
        "findings": [statements.finding(listed) for listed in release.findings],
        "versions": {"python": platform.python_version(), "shoal": __version__}
        | {name: version(name) for name in _PARTS},
        "created": created,
    }
    return {name: finite(value) for name, value in certificate.items()}


def rounded(value: Any) -> Any:
    """Round a number to two significant digits; whole numbers, which are counts or exact by nature, stay."""
    if not isinstance(value, float) or not -1e300 < value < 1e300 or value == int(value):
        return value
    return float(f"{value:.{DIGITS}g}")


def neutral(policy: Policy) -> Policy:
    """Return the policy without the owner's file names: a hierarchy is named after its column, if that is plain."""
    columns = {}
    for i, (name, column) in enumerate(policy.columns.items()):
        if isinstance(column.hierarchy, File):
            plain = re.fullmatch(r"\w[\w-]*", name) is not None
            file = File(path=f"{name}.csv" if plain else f"column {i + 1}.csv")
            column = column.model_copy(update={"hierarchy": file})
        columns[name] = column
    require = tuple(
        model.model_copy(update={"population": "population.csv"}) if isinstance(model, PopulationModel) else model
        for model in policy.require
    )
    return policy.model_copy(update={"columns": columns, "require": require})


def needs_more(name: str, policy: Policy, dropped: int) -> bool:
    """Return whether a figure depends on more than the release."""
    return (
        name in OF_POPULATION | OF_HOUSEHOLDS
        or (name in OF_PERSONS and policy.release.entity is not None)
        or (name in OF_ORIGINAL and dropped > 0)
    )


class _Statements:
    """The parts of the certificate, rounded where necessary."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.policy = release.policy
        self.dropped = release.suppressed if release.policy.release.suppressed == "drop" else 0

    def requirements(self) -> list[dict[str, Any]]:
        models = {model.summary: model for model in self.policy.models}
        requirements = []
        for verdict in self.release.verdicts.verdicts:
            model, line = models.get(verdict.asked), verdict.as_dict()
            hidden = model is None or (isinstance(model, COMPARED) and self.dropped > 0)
            if hidden or needs_more(verdict.figure, self.policy, self.dropped):
                line["worst"] = rounded(line["worst"])
            requirements.append(line)
        return requirements

    def measured(self) -> dict[str, Any]:
        return dict(self._figures(self.release.measured.as_dict()))

    def _figures(self, figures: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in figures.items():
            if isinstance(value, Mapping):
                yield name, dict(self._figures(value))
            else:
                yield name, rounded(value) if needs_more(name, self.policy, self.dropped) else value

    def losses(self) -> dict[str, Any]:
        """The objective with two digits, and the losses that follow from the release, exactly."""
        loss, objective = self.release.loss, self.policy.release.objective
        exact = {name: loss[name] for name in OF_RELEASE if name in loss}
        further = {name: rounded(loss[name]) for name in ("sensitive", "with-sensitive") if name in loss}
        further |= {} if objective in exact or objective not in loss else {objective: rounded(loss[objective])}
        return exact | further

    def levels(self) -> dict[str, int | str | None]:
        """The levels; that of a mask that hides everything is omitted: it is the length of the longest value."""
        levels: dict[str, int | str | None] = dict(self.release.levels)
        for hierarchy in self.release.recoding.hierarchies:
            name = hierarchy.column
            at_top = levels[name] == hierarchy.number_of_top
            if at_top and isinstance(self.policy.columns[name].hierarchy, Mask):
                levels[name] = "top"
        return levels

    def finding(self, finding: Finding) -> dict[str, Any]:
        """Return a finding without the owner's file names."""
        line = finding.as_dict()
        if finding.kind == "attack-succeeds":
            line["people"] = None  # numbers of people whom attacks reach in the original stay out
        return line | {name: self.without_names(line[name]) for name in ("fact", "remedy")}

    def without_names(self, text: str) -> str:
        """Return a text without the owner's file names."""
        source = self.release.engine.source
        files = [*self.policy.files, *([Path(source)] if isinstance(source, str | Path) else [])]
        for path in files:
            for name in (str(path), path.name):
                text = text.replace(name, "the input" if path == files[-1] else "a file") if name else text
        return text


def _without_counts(attacks: Any) -> Any:
    """Return results of attacks with two digits, without the numbers of people and the sentences that contain them."""
    if isinstance(attacks, Mapping):
        figures = {name: part for name, part in attacks.items() if name not in ("attempts", "successes", "sentence")}
        return {name: _without_counts(part) for name, part in figures.items()}
    if isinstance(attacks, list | tuple):
        return [_without_counts(part) for part in attacks]
    return rounded(attacks)


def _preset(policy: Policy) -> dict[str, str] | None:
    """Return the preset and its source."""
    if policy.preset is None:
        return None
    preset = PRESETS[policy.preset]
    return {"name": policy.preset, "citation": preset.citation, "note": preset.note}
