"""A certificate against the released file it speaks of: what can be counted again is, line by line.

Nothing but the file is needed, so anybody who has both can do it. What only the original could tell is said to be so:
it neither holds nor fails.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jsonschema

from shoal.attacks.run import measured
from shoal.engines.base import Groups, Rows, require_columns
from shoal.engines.data import Data
from shoal.engines.local import LocalEngine
from shoal.engines.opening import engine_of, in_order, order_of, sensitive_of
from shoal.errors import DataError, PolicyError
from shoal.judge import Gaps, as_seen, judged
from shoal.judge.figures import Figures, figures
from shoal.judge.recount import Reference, recounted
from shoal.judge.whose import whose
from shoal.models.closeness import TCloseness
from shoal.models.diversity import RecursiveDiversity
from shoal.models.verdict import Answered, Outcome, Verdict
from shoal.policy import Policy
from shoal.release.certificate import OF_HOUSEHOLDS, OF_ORIGINAL, OF_POPULATION, SCHEMA, needs_more, rounded
from shoal.release.receipt import key_of, keyed, read_receipt
from shoal.release.signatures import fingerprint, read_public, signed_by
from shoal.table.builders import File
from shoal.table.frequency import FrequencyTable
from shoal.text.jsonable import DEEPEST, nested_deeper, read_json
from shoal.text.showing import Shown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from shoal.attacks.risk import Attacks
    from shoal.engines.ibis import IbisEngine


Bound = Literal["most", "least"]


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
class Verification(Answered, Shown):
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
    def sentence(self) -> str:
        """The answer in words."""
        if self.outcome == "fails":
            return f"The certificate does not hold: {', '.join(line.name for line in self if line.holds is False)}."
        if self.outcome == "holds":
            return "Every requirement holds, and nothing contradicts the certificate."
        missing = dict.fromkeys(line.why for line in self if line.required and line.holds is None)
        return f"Whether every requirement holds cannot be told ({'; '.join(missing)}); nothing contradicts the rest."

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "outcome": self.outcome,
            "holds": self.holds,
            "hold": self.holds,  # its old name, for one more version
            "lines": [asdict(line) for line in self.lines],
        }


def verify_certificate(
    certificate: Mapping[str, Any] | str | Path,
    data: Data,
    *,
    original: Data | None = None,
    receipt: Mapping[str, Any] | str | Path | None = None,
    key: str | Path | Ed25519PublicKey | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> Verification:
    """Count a release again and compare with its certificate, a path or plain values.

    With the ``original``, the table that the release was made from, distributions are compared with its own, and its
    people are attacked where the policy limits what attacks may find: then these requirements are judged too. With the
    ``receipt`` the digests are checked, and whether the original is the table they speak of. ``key`` is the public key
    of whoever should have signed the certificate. ``data`` is a path, a frame, or an Ibis table, which is counted where
    it is. Raises DataError where the certificate is none: it must keep the published schema.
    """
    folder = Path(certificate).parent if isinstance(certificate, str | Path) else Path()
    claims = _read(certificate) if isinstance(certificate, str | Path) else certificate
    _require_schema(claims)
    policy = _policy(claims, folder)
    kept = None if receipt is None else read_receipt(receipt)
    signature = _signature(claims, key)
    path = isinstance(data, str | Path)
    engine = LocalEngine.of(data, separator=separator, encoding=encoding) if path else engine_of(data)
    engine = engine.reading(policy)
    truth = None if original is None else engine_of(original, policy)
    counted = _lines(claims, policy, _Counted.of(engine, policy), truth)
    return Verification((*counted, signature, *_source(claims, policy, kept, truth)))


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
        return read_json(Path(path).read_text(encoding="utf-8-sig"), _once)
    except OSError as error:
        raise DataError(f"certificate {path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise DataError(
            f"certificate {str(path)!r}: is not JSON", "the certificate comes first, the release second"
        ) from None


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Of a field that is there twice some readers take the first and some the last: not of ours."""
    if len(found := dict(fields)) < len(fields):
        raise DataError("certificate: a field is there twice", "was it changed?")
    return found


def _require_schema(claims: Any) -> None:
    """Messages of a validator quote what they refuse; only the place is told."""
    if nested_deeper(claims, DEEPEST):
        raise DataError(f"certificate: nested more than {DEEPEST} deep", "was it changed?")
    written = claims.get("schema") if isinstance(claims, Mapping) else None
    if written == "shoal-certificate/1":
        raise DataError(
            f"certificate: it has the form {written} of an earlier shoal, and this one reads {SCHEMA}",
            "its hash of the input confirms guesses: do not publish it, and release the table again",
        )
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
    groups: Groups  # of rows that stay in their engine

    @classmethod
    def of(cls, engine: LocalEngine | IbisEngine, policy: Policy) -> _Counted:
        if isinstance(engine, LocalEngine):
            return cls(engine, engine, Groups(engine.table, ""))
        there = [name for name in (*policy.quasi, *policy.sensitive) if name in engine.columns]
        seen = engine.tally(there or engine.columns[:1])
        return cls(engine, seen, engine.last_groups)

    @property
    def rows(self) -> Rows | Groups:
        """The rows, or what the engine has counted of them."""
        return Rows(self.engine.table) if isinstance(self.engine, LocalEngine) else self.groups

    def table(self, rows: Rows | Groups, policy: Policy, original: LocalEngine | IbisEngine | None) -> FrequencyTable:
        """The classes of the release, compared with the distribution of the original, or else with their own."""
        whole = self.seen if original is None else sensitive_of(original, policy)
        return recounted(rows, policy, Reference(whole.domains(policy)))


# ── what it says, line by line ──────────────────────────────────────────────────────────────────────────────


def _lines(
    claims: Mapping[str, Any], policy: Policy, release: _Counted, original: LocalEngine | IbisEngine | None
) -> Iterator[Line]:
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
    if original is not None:
        if not isinstance(original, LocalEngine):
            original.tallied(policy)  # whose records are known once they were counted
        yield _line("original", source["records"], original.n_records, "the original has another number of records")
    allowed = policy.allowance(source["records"])
    yield Line("output.suppressed", suppressed, f"at most {allowed}", suppressed <= allowed)
    left = [name for name in policy.identifiers if name in engine.columns]
    yield Line("identifiers", 0, len(left), not left, "columns that should be gone are there" if left else "")
    limits = _Limits.of(policy, dropped, engine, original)
    found = whose(release.seen, original, policy) if limits.gaps.persons and original is not None else None
    rows = release.rows if found is None or found.rows is None else found.rows
    counted = release.table(rows, limits.known, original)
    if found is not None:
        limits = replace(limits, gaps=limits.gaps.known(found, counted))
    attacks = None if original is None else measured(in_order(engine, rows, policy), original, limits.known)
    yield from _requirements(claims["requirements"], limits, counted, attacks)
    yield from _measured(claims["measured"], policy, counted, limits)
    yield from _losses(claims, counted, policy)
    yield from _agreement(claims, policy)
    for name in ("search", "versions", "warnings", "created"):
        yield Line(name, None, None, None, "tells how it was made")


def _signature(claims: Mapping[str, Any], key: str | Path | Ed25519PublicKey | None) -> Line:
    """Whether the certificate was signed, and by whom it should have been."""
    signature = claims.get("signature")
    whose = None if signature is None else signature["key"]
    if key is None:
        checked = "signed, not checked (verify it with the public key of the signer)"
        why = "unsigned, so anybody may have written it" if signature is None else checked
        return Line("signature", whose, None, None, why)
    public = read_public(key) if isinstance(key, str | Path) else key
    holds, asked = signed_by(claims, public), fingerprint(public)
    why = "changed since it was signed" if whose == asked else "signed by another key"
    return Line("signature", whose, asked, holds, "" if holds else "unsigned" if whose is None else why)


def _source(
    claims: Mapping[str, Any],
    policy: Policy,
    receipt: Mapping[str, Any] | None,
    original: LocalEngine | IbisEngine | None,
) -> Iterator[Line]:
    """What the certificate says of the table that the release was made from."""
    digest, hierarchies = claims["input"]["hmac_sha256"], claims["hierarchies"]
    if receipt is None:
        yield Line("input.hmac_sha256", digest, None, None, "needs the receipt")
        yield Line("hierarchies", None, None, None, "needs the receipt")
        return
    key = key_of(receipt)
    yield _line("receipt", receipt["output"]["sha256"], claims["output"]["sha256"], "it is of another release")
    found = keyed(key, "input", receipt["input"]["sha256"])
    yield _line("input.hmac_sha256", digest, found, "the receipt is of another input")
    known = {name: keyed(key, f"hierarchy {name}", str(own)) for name, own in receipt["hierarchies"].items()}
    wrong = "" if known == hierarchies else "the receipt has other hierarchies"
    yield Line("hierarchies", sorted(hierarchies), sorted(known), not wrong, wrong)
    if original is not None:
        if not isinstance(original, LocalEngine):
            require_columns(original.columns, policy)
            original.tallied(policy)  # a table in a database has the digest of its counts
        found = keyed(key, "input", original.fingerprint)
        yield _line("original.hmac_sha256", digest, found, "this is not the table that the release was made from")


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


def _below(level: int | str | None, least: int) -> bool:
    return isinstance(level, int) and level < least  # nothing is above the top


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
    try:
        claimed = float(claimed)
    except OverflowError:  # beyond all figures
        return False
    return claimed == found or math.isclose(claimed, found, rel_tol=1e-9, abs_tol=1e-12)


@dataclass(frozen=True)
class _Limits:
    """What a release cannot tell without its original, the population, or who the persons are."""

    policy: Policy
    gaps: Gaps

    @classmethod
    def of(
        cls, policy: Policy, dropped: int, engine: LocalEngine | IbisEngine, original: LocalEngine | IbisEngine | None
    ) -> _Limits:
        """``dropped``: records of the original that the certificate says are not in the release."""
        unknown, _ = Gaps.of(policy, engine.columns, order_of(engine, original))
        missing = {
            name: f"needs the hierarchy {column.hierarchy.path}"
            for name, column in policy.columns.items()
            if column.role == "sensitive"
            and isinstance(column.hierarchy, File)
            and not (policy.folder / column.hierarchy.path).is_file()
        }
        whole = f"needs the original, of which {dropped} records were dropped" if dropped and original is None else ""
        return cls(
            policy,
            replace(unknown, whole=whole, dropped=dropped, population="needs the population", hierarchies=missing),
        )

    @property
    def known(self) -> Policy:
        """The policy without the hierarchies that are not there."""
        columns = {
            name: column.model_copy(update={"hierarchy": None}) if name in self.gaps.hierarchies else column
            for name, column in self.policy.columns.items()
        }
        return self.policy.model_copy(update={"columns": columns})

    def told(self, name: str, found: float) -> float:
        """A figure as the certificate tells it: in two digits where it depends on more than the release."""
        value: float = rounded(found) if needs_more(name, self.policy, self.gaps.dropped) else found
        return value

    def of_figure(self, name: str, column: str | None = None) -> str:
        """Why a figure cannot be counted; empty where it can."""
        if name in OF_POPULATION:
            return self.gaps.population
        if name in OF_HOUSEHOLDS and self.policy.release.household is not None:
            return f"needs the column {self.policy.release.household!r}, which tells households apart"
        if name in _OF_PERSONS:
            return self.gaps.persons
        if name in OF_ORIGINAL and self.gaps.whole:
            return self.gaps.whole
        if name == "t":
            covered = list(self.gaps.hierarchies) if column is None else [column]
            return next((self.gaps.hierarchies[each] for each in covered if each in self.gaps.hierarchies), "")
        return ""


# What records stand for where nobody knows the persons: the most that the figure of persons can be, or the least.
_OF_PERSONS: dict[str, Bound] = {
    "k": "most",
    "uniques": "least",
    "sample_uniqueness": "least",
    "risk_max": "least",
    "risk_mean": "least",
}


def _requirements(
    claimed: list[Any], limits: _Limits, table: FrequencyTable, attacks: Attacks | None
) -> Iterator[Line]:
    policy, gaps = limits.policy, limits.gaps
    told = [claim["asked"] for claim in claimed]
    found = judged(table, policy, attacks=attacks, gaps=gaps).verdicts
    asked = [verdict.asked for verdict in found]
    if told not in (asked, asked[: len(policy.models)]):  # older certificates tell of limits under attacks alone
        yield Line("requirements", told, asked, False, "the policy asks for others")
    claims: list[Any] = claimed if told == asked[: len(told)] else []
    exact = [not gaps.of_model(model, policy.sensitive) for model in policy.models]
    for verdict, claim, counted in zip_longest(found, claims, exact):
        yield _requirement(verdict, claim, bool(counted), limits)


def _requirement(verdict: Verdict, claim: Mapping[str, Any] | None, counted: bool, limits: _Limits) -> Line:
    """A verdict beside what is claimed of it; the figures are compared where the same was ``counted``.

    Attacks are not: who made the release knew which record is whose, and scored them by that.
    """
    worst = None if claim is None else claim["worst"]
    found = None if math.isnan(verdict.worst) or verdict.outcome == "unknown" else verdict.worst
    holds: bool | None = None if verdict.outcome == "unknown" else verdict.holds
    why = verdict.missing
    if verdict.outcome == "fails":
        why = f"{verdict.classes} classes with {verdict.records} records fail" if verdict.classes else "it fails"
    elif claim is not None and not claim["holds"]:
        holds, why = False, "the certificate says itself that it does not hold"
    elif claim is not None and holds and counted and not _same_verdict(claim, verdict, limits):
        holds, why = False, "its figure, verdict or numbers of classes and records at fault are others"
    return Line(f"requirement: {verdict.asked}", worst, found, holds, why, required=True)


def _same_verdict(claim: Mapping[str, Any], verdict: Verdict, limits: _Limits) -> bool:
    same = all(_same(claim[part], getattr(verdict, part)) for part in ("figure", "classes", "records"))
    return same and _same(claim["worst"], limits.told(verdict.figure, verdict.worst))


def _measured(claimed: Mapping[str, Any], policy: Policy, table: FrequencyTable, limits: _Limits) -> Iterator[Line]:
    found = _figures(table, policy, limits)
    overall = {name: limits.told(name, value) for name, value in found.overall.items()}
    for name, value in claimed.items():
        if name == "columns":
            continue
        yield _figure(f"measured.{name}", value, overall.get(name), limits.of_figure(name), _OF_PERSONS.get(name))
    for column, values in claimed["columns"].items():
        own = {name: limits.told(name, value) for name, value in found.columns.get(column, {}).items()}
        for name, value in values.items():
            yield _figure(f"measured.columns.{column}.{name}", value, own.get(name), limits.of_figure(name, column))


def _figure(name: str, claimed: Any, found: float | None, why: str, bound: Bound | None = None) -> Line:
    if why and bound and found is not None and claimed is not None and not _within(float(claimed), found, bound):
        return Line(name, claimed, found, False, "persons are never more than records")
    if why:
        return Line(name, claimed, None, None, why)
    if found is None:
        return Line(name, claimed, None, False, "there is no such figure")
    return _line(name, claimed, found)


def _within(claimed: float, found: float, bound: Bound) -> bool:
    slack = 1e-9 * abs(found) + 1e-12
    return claimed <= found + slack if bound == "most" else claimed >= found - slack


def _figures(table: FrequencyTable, policy: Policy, limits: _Limits) -> Figures:
    distances: dict[str, str] = {}
    l = 2
    for model in policy.models:
        if isinstance(model, TCloseness) and not limits.gaps.of_model(model, policy.sensitive):
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
