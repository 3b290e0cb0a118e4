"""A certificate against the released file it speaks of: what can be counted again is, line by line.

Nothing but the file is needed, so anybody who has both can do it. What only the original could tell is said to be so:
it neither holds nor fails.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema

from shoal.engines.base import Rows
from shoal.engines.local import LocalEngine
from shoal.errors import DataError, PolicyError
from shoal.figures import Figures, figures
from shoal.judge import as_seen, judged
from shoal.models import PopulationModel, PrivacyModel, SensitiveModel
from shoal.models.closeness import BasicLikeness, DeltaDisclosure, EnhancedLikeness, TCloseness
from shoal.models.diversity import RecursiveDiversity
from shoal.models.size import AlphaK, PSensitive
from shoal.pipeline import engine_of
from shoal.plain import DEEPEST, nested_deeper, read_json
from shoal.policy import Policy
from shoal.table.builders import File
from shoal.table.frequency import FrequencyTable
from shoal.verdict import Outcome
from shoal.verify import Reference, recounted, recounted_groups

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine


@dataclass(frozen=True)
class Line:
    """One claim of a certificate."""

    name: str
    claimed: Any
    found: Any  # None where it was not counted
    holds: bool | None  # None where the release alone cannot tell
    why: str = ""  # it cannot be told, or what is wrong
    required: bool = False  # whether it is a requirement of the policy: where that cannot be told, the whole cannot


@dataclass(frozen=True)
class Verification:
    """All claims that were looked at."""

    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    @property
    def outcome(self) -> Outcome:
        """fails where something contradicts the certificate; unknown where a requirement cannot be told; else holds."""
        if any(line.holds is False for line in self.lines):
            return "fails"
        return "unknown" if any(line.required and line.holds is None for line in self.lines) else "holds"

    @property
    def holds(self) -> bool:
        """Whether every requirement was judged again and holds, and nothing contradicts the certificate."""
        return self.outcome == "holds"

    @property
    def hold(self) -> bool:
        """Deprecated name of ``holds``."""
        return self.holds

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.outcome == "fails":
            return f"The certificate does not hold: {', '.join(line.name for line in self if line.holds is False)}."
        if self.outcome == "holds":
            return "Every requirement holds, and nothing contradicts the certificate."
        missing = dict.fromkeys(line.why for line in self if line.required and line.holds is None)
        return f"Whether every requirement holds cannot be told ({'; '.join(missing)}); nothing contradicts the rest."

    def _repr_html_(self) -> str:
        from shoal.report.notebook import verification_html

        return verification_html(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"outcome": self.outcome, "hold": self.holds, "lines": [asdict(line) for line in self.lines]}


def verify_certificate(
    certificate: Mapping[str, Any] | str | Path,
    data: Any,
    *,
    separator: str | None = None,
    encoding: str | None = None,
) -> Verification:
    """Count a release again and compare with its certificate, a path or plain values.

    ``data`` is a path, a frame, or an Ibis table, which is counted where it is. Raises DataError where the certificate
    is none: it must keep the published schema.
    """
    folder = Path(certificate).parent if isinstance(certificate, str | Path) else Path()
    claims = _read(certificate) if isinstance(certificate, str | Path) else certificate
    _require_schema(claims)
    policy = _policy(claims, folder)
    path = isinstance(data, str | Path)
    engine = LocalEngine.of(data, separator=separator, encoding=encoding) if path else engine_of(data)
    return Verification(tuple(_lines(claims, policy, _Counted.of(engine, policy))))


def require_certificate(path: str | Path) -> None:
    """Raise DataError where a file is no certificate, before the long work."""
    _require_schema(_read(path))


def schema() -> dict[str, Any]:
    """The JSON schema that every certificate keeps."""
    return dict(_schema())


@cache
def _schema() -> dict[str, Any]:
    text = (files("shoal.report") / "certificate.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def _read(path: str | Path) -> Any:
    try:
        return read_json(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"certificate {path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise DataError(
            f"certificate {str(path)!r}: is not JSON", "the certificate comes first, the release second"
        ) from None


def _require_schema(claims: Any) -> None:
    """Messages of a validator quote what they refuse; only the place is told."""
    if nested_deeper(claims, DEEPEST):
        raise DataError(f"certificate: nested more than {DEEPEST} deep", "was it changed?")
    wrong = next(jsonschema.Draft202012Validator(_schema()).iter_errors(claims), None)
    if wrong is not None:
        place = ".".join(map(str, wrong.absolute_path)) or "the whole"
        raise DataError(
            f"certificate: {place} is not as the schema {_schema()['$id']} has it ({wrong.validator})",
            "was it changed, or written by another version?",
        )


def _policy(claims: Mapping[str, Any], folder: Path) -> Policy:
    try:
        return Policy.of(dict(claims["policy"]), folder)
    except PolicyError as error:
        raise DataError(f"certificate: its policy is none: {error.message}", error.hint) from None


@dataclass(frozen=True, eq=False)
class _Counted:
    """A release, and its rows or distinct rows with numbers."""

    engine: LocalEngine | IbisEngine
    seen: LocalEngine

    @classmethod
    def of(cls, engine: LocalEngine | IbisEngine, policy: Policy) -> _Counted:
        if isinstance(engine, LocalEngine):
            return cls(engine, engine)
        there = [name for name in (*policy.quasi, *policy.sensitive) if name in engine.columns]
        return cls(engine, engine.tally(there or engine.columns[:1]))

    def table(self, policy: Policy) -> FrequencyTable:
        """The classes of the release, compared with its own distribution."""
        reference = Reference(self.seen.domains(policy))
        if isinstance(self.engine, LocalEngine):
            return recounted(Rows(self.engine.table), policy, reference)
        return recounted_groups(self.engine.last_groups, policy.quasi, reference)


# ── what it says, line by line ──────────────────────────────────────────────────────────────────────────────


def _lines(claims: Mapping[str, Any], policy: Policy, release: _Counted) -> Iterator[Line]:
    source, output, engine = claims["input"], claims["output"], release.engine
    n, suppressed = engine.n_records, output["suppressed"]
    table = "this is not the table, or the certificate is of a file"
    other = "this is not the file, byte for byte" if isinstance(engine, LocalEngine) or engine.source else table
    yield _line("output.sha256", output["sha256"], engine.fingerprint, other)
    yield _line("output.records", output["records"], n)
    if wrong := _other_columns(engine.columns, policy):
        yield Line("columns", list(policy.columns), engine.columns, False, wrong)
        return  # what the classes are cannot be told
    dropped = suppressed if policy.release.suppressed == "drop" else 0
    yield _line("input.records", source["records"], n + dropped, "released and dropped records do not add up to it")
    allowed = policy.allowance(source["records"])
    yield Line("output.suppressed", suppressed, f"at most {allowed}", suppressed <= allowed)
    yield Line("input.sha256", source["sha256"], None, None, "needs the original")
    left = [name for name in policy.identifiers if name in engine.columns]
    yield Line("identifiers", 0, len(left), not left, "columns that should be gone are there" if left else "")
    limits = _Limits(policy, dropped)
    counted = limits.counted(release)
    yield from _requirements(claims["requirements"], policy, counted, limits)
    yield from _measured(claims["measured"], policy, counted, limits)
    yield from _losses(claims, counted, policy)
    yield from _agreement(claims, policy)
    yield Line("hierarchies", None, None, None, "needs the original, or its hierarchies")
    for name in ("search", "versions", "warnings", "created"):
        yield Line(name, None, None, None, "tells how it was made")


def _other_columns(there: list[str], policy: Policy) -> str:
    """What is wrong with the columns of the file; identifiers that came back have a line of their own."""
    strange = [name for name in there if name not in policy.columns]
    absent = [name for name in (*policy.quasi, *policy.sensitive) if name not in there]
    told = [f"the policy has no {', '.join(map(repr, strange))}"] if strange else []
    return "; ".join(told + ([f"the file has no {', '.join(map(repr, absent))}"] if absent else []))


def _agreement(claims: Mapping[str, Any], policy: Policy) -> Iterator[Line]:
    """What a certificate says twice."""
    yield _line("seed", claims["seed"], policy.release.seed, "the policy has another")
    named = (claims.get("preset") or {}).get("name")
    if named is not None or policy.preset is not None:
        same = named == policy.preset
        yield Line("preset", named, policy.preset, same, "" if same else "the policy has another")
    levels = claims["levels"]
    if set(levels) != set(policy.quasi):
        yield Line("levels", sorted(levels), sorted(policy.quasi), False, "these are not the quasi columns")
    elif low := [name for name in policy.quasi if _below(levels[name], policy.columns[name].min_level)]:
        yield Line("levels", [levels[name] for name in low], low, False, "lower than the policy's min_level")
    else:
        yield Line("levels", None, None, None, "needs the original, or its hierarchies")
    if claims.get("attacks"):
        yield Line("attacks", None, None, None, "needs the original")
    elif policy.limits:
        yield Line("attacks", None, None, False, "the policy limits what attacks may find, and none is told")


def _below(level: int | None, least: int) -> bool:
    return level is not None and level < least


def _line(name: str, claimed: Any, found: Any, wrong: str = "") -> Line:
    holds = _same(claimed, found)
    return Line(name, claimed, found, holds, "" if holds else wrong)


def _same(claimed: Any, found: Any) -> bool:
    """Figures are sums of floats, and may differ in their last digits; JSON has texts for those without a bound."""
    if isinstance(found, bool | str) or (isinstance(claimed, bool | str) and claimed not in ("inf", "-inf")):
        return type(claimed) is type(found) and bool(claimed == found)
    if claimed is None:
        return found is None or math.isnan(found)
    if isinstance(claimed, int) and isinstance(found, int):
        return claimed == found  # counts are exact, and a seed may have hundreds of digits
    claimed = float(claimed)
    return claimed == found or math.isclose(claimed, found, rel_tol=1e-9, abs_tol=1e-12)


class _Limits:
    """What a release cannot tell without its original, the population, or who the persons are."""

    def __init__(self, policy: Policy, dropped: int) -> None:
        self.policy = policy
        self._original = f"needs the original, of which {dropped} records were dropped" if dropped else ""
        self._persons = "needs to tell persons apart, and a release does not" if policy.release.entity else ""
        self._missing = {
            name: f"needs the hierarchy {column.hierarchy.path}"
            for name, column in policy.columns.items()
            if column.role == "sensitive"
            and isinstance(column.hierarchy, File)
            and not (policy.folder / column.hierarchy.path).is_file()
        }

    def counted(self, release: _Counted) -> FrequencyTable:
        """The classes of the release, compared with its own distribution: the original's, where none were dropped."""
        columns = {
            name: column.model_copy(update={"hierarchy": None}) if name in self._missing else column
            for name, column in self.policy.columns.items()
        }
        known = self.policy.model_copy(update={"columns": columns})
        return release.table(known)

    def of_model(self, model: PrivacyModel) -> str:
        """Why a requirement cannot be judged; empty where it can."""
        if isinstance(model, PopulationModel):
            return "needs the population"
        if isinstance(model, TCloseness | BasicLikeness | EnhancedLikeness | DeltaDisclosure) and self._original:
            return self._original
        if isinstance(model, TCloseness):
            covered = [model.column] if model.column else self.policy.sensitive
            return next((self._missing[name] for name in covered if name in self._missing), "")
        counts_persons = not isinstance(model, SensitiveModel) or isinstance(model, PSensitive | AlphaK)
        return self._persons if counts_persons else ""

    def of_figure(self, name: str, column: str | None = None) -> str:
        """Why a figure cannot be counted; empty where it can."""
        if name in _OF_POPULATION:
            return "needs the population"
        if name in _OF_PERSONS:
            return self._persons
        if name in _OF_ORIGINAL and self._original:
            return self._original
        if name == "t":
            covered = list(self._missing) if column is None else [column]
            return next((self._missing[each] for each in covered if each in self._missing), "")
        return ""


_OF_POPULATION = {"k_map", "presence", "population_uniqueness"}
_OF_PERSONS = {"k", "uniques", "sample_uniqueness", "risk_max", "risk_mean"}
_OF_ORIGINAL = {"t", "beta", "enhanced_beta", "delta"}


def _requirements(claimed: list[Any], policy: Policy, table: FrequencyTable, limits: _Limits) -> Iterator[Line]:
    told = [claim["asked"] for claim in claimed]
    asked = [*(model.asked for model in policy.models), *(limit.asked for limit in policy.limits)]
    n = len(policy.models)
    if told not in (asked, asked[:n]):  # older certificates tell of limits under attacks alone
        yield Line("requirements", told, asked, False, "the policy asks for others")
        return
    for limit, claim in zip_longest(policy.limits, claimed[n:]):
        worst = None if claim is None else claim["worst"]
        yield Line(f"requirement: {limit.asked}", worst, None, None, limit.judge(None).missing, required=True)
    for model, claim in zip(policy.models, claimed[:n], strict=True):
        name = f"requirement: {model.asked}"
        if why := limits.of_model(model):
            yield Line(name, claim["worst"], None, None, why, required=True)
            continue
        alone = policy.model_copy(update={"require": (model,), "preset": None})
        (verdict,) = judged(table, alone).verdicts
        same = all(
            _same(claim[part], getattr(verdict, part)) for part in ("figure", "holds", "worst", "classes", "records")
        )
        wrong = "" if same else "its figure, verdict or numbers of classes and records at fault are others"
        if not verdict.holds:
            wrong = f"{verdict.classes} classes with {verdict.records} records fail"
        yield Line(name, claim["worst"], verdict.worst, verdict.holds and same, wrong, required=True)


def _measured(claimed: Mapping[str, Any], policy: Policy, table: FrequencyTable, limits: _Limits) -> Iterator[Line]:
    found = _figures(table, policy, limits)
    for name, value in claimed.items():
        if name == "columns":
            continue
        yield _figure(f"measured.{name}", value, found.overall.get(name), limits.of_figure(name))
    for column, values in claimed["columns"].items():
        own = found.columns.get(column, {})
        for name, value in values.items():
            yield _figure(f"measured.columns.{column}.{name}", value, own.get(name), limits.of_figure(name, column))


def _figure(name: str, claimed: Any, found: float | None, why: str) -> Line:
    if why:
        return Line(name, claimed, None, None, why)
    if found is None:
        return Line(name, claimed, None, False, "there is no such figure")
    return _line(name, claimed, found)


def _figures(table: FrequencyTable, policy: Policy, limits: _Limits) -> Figures:
    distances: dict[str, str] = {}
    l = 2
    for model in policy.models:
        if isinstance(model, TCloseness) and not limits.of_model(model):
            distances |= dict.fromkeys([model.column] if model.column else policy.sensitive, model.distance)
        if isinstance(model, RecursiveDiversity):
            l = model.l
    return figures(table, l=l, distances=distances, seen=as_seen(table, policy))


def _losses(claims: Mapping[str, Any], table: FrequencyTable, policy: Policy) -> Iterator[Line]:
    """Two losses see nothing but the sizes of classes; the others need to know what was lost."""
    n, suppressed = claims["input"]["records"], claims["output"]["suppressed"]
    sizes = table.counts.tolist()
    known = {
        "discernibility": float(sum(size * size for size in sizes) + n * suppressed),
        "average-class": n / (len(sizes) + (suppressed > 0)),
    }
    for name, value in claims["loss"].items():
        if name in known and (policy.release.suppressed == "drop" or not suppressed):
            yield _line(f"loss.{name}", value, known[name])
        else:
            yield Line(f"loss.{name}", value, None, None, "needs the original")
