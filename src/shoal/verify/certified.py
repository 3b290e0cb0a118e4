"""Verify a certificate against the released file: every statement that can be recounted is recounted.

Only the file is needed, so anyone who has both can do it. Statements that need the original are reported as such: they
neither hold nor fail.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jsonschema

from shoal.attacks.limits import measured
from shoal.engines.base import Engine, Groups, Rows, require_columns
from shoal.engines.data import Data
from shoal.engines.formats.parquet_parts import part_digests
from shoal.engines.local import LocalEngine
from shoal.engines.opening import engine_of, in_order, order_of, sensitive_of
from shoal.errors import DataError, PolicyError
from shoal.findings import findings_of, ordered
from shoal.findings.evidence import of_table
from shoal.forbidden.mining import mine
from shoal.judge import Gaps, as_seen, judge_release
from shoal.judge.as_written import judged_as_written
from shoal.judge.figures import Figures, figures
from shoal.judge.recount import Reference, recounted
from shoal.models.closeness import TCloseness
from shoal.models.diversity import RecursiveDiversity
from shoal.models.finding import Finding
from shoal.models.verdict import Verdict, Verdicts
from shoal.original.owners import owners_of
from shoal.policy import Policy, PolicySource, policy_of
from shoal.release.certificate import OF_HOUSEHOLDS, OF_ORIGINAL, OF_POPULATION, SCHEMA, needs_more, rounded
from shoal.release.receipt import key_of, keyed, read_receipt
from shoal.release.signatures import key_fingerprint, read_public, signed_by
from shoal.tables.frequency import FrequencyTable
from shoal.text.bounded import read_bounded
from shoal.text.jsonable import DEEPEST, nested_deeper, read_json
from shoal.verify.check import checked
from shoal.verify.hierarchy_files import UnopenedFile, with_files_of
from shoal.verify.stated_findings import compared_findings, stated_findings
from shoal.verify.verification import Line, Verification

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


Bound = Literal["most", "least"]
STATED = "stated by the publisher"

# What to do with certificates of earlier versions.
EARLIER = {
    "shoal-certificate/1": "its hash of the input can be used to confirm guesses: do not publish it, and anonymize the "
    "table again",
    "shoal-certificate/2": "it does not say whether the table may be published: anonymize the table again",
}


def verify_certificate(
    certificate: Mapping[str, Any] | str | Path,
    data: Data,
    *,
    original: Data | None = None,
    receipt: Mapping[str, Any] | str | Path | None = None,
    key: str | Path | Ed25519PublicKey | None = None,
    policy: PolicySource | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Verification:
    """Recount a release and compare it with its certificate, given as a path or as plain values.

    Parameters
    ----------
    certificate
        The certificate, as a path or as plain values.
    data
        The released table: a path, a frame, or an Ibis table, which is counted in place.
    original
        The table that the release was made from: distributions are compared with it, and its people are attacked if the
        policy limits attacks, so that these requirements are judged too.
    receipt
        The receipt: the digests are checked, and whether they belong to the original.
    key
        The public key of the expected signer.
    policy
        Your own policy: its requirements are judged too, and its hierarchies are used where those of the certificate
        are files, none of which is opened.
    separator
        The separator of a CSV file; guessed by default.
    encoding
        The encoding of a CSV file; guessed by default.
    header
        Whether the first line of a CSV file has the names.

    Returns
    -------
    Verification
        What the certificate states and what the recount says of it.

    Raises
    ------
    DataError
        If the certificate is not valid under the published schema, or the table cannot be read.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> release = shoal.anonymize(people, k=2, quasi=["age"], sensitive=["disease"])
    >>> shoal.verify_certificate(release.certificate, release.table).holds
    True
    >>> shoal.verify_certificate(release.certificate, people).outcome
    'fails'
    """
    claims = _read(certificate) if isinstance(certificate, str | Path) else certificate
    _require_schema(claims)
    own = None if policy is None else policy_of(policy)
    asked = with_files_of(_policy(claims), own)
    kept = None if receipt is None else read_receipt(receipt)
    signature = _signature(claims, key)
    opened = engine_of(data, separator=separator, encoding=encoding, header=header)
    before = None if original is None else engine_of(original)
    engine = opened.reading(asked)
    truth = None if before is None else before.reading(asked).coarsened(asked)
    found: list[Finding] = []
    counted = _lines(claims, asked, _CountedRelease.of(engine, asked), truth, found)
    lines = [*counted, *_files(claims, engine.source), signature, *_source(claims, asked, kept, truth)]
    if own is not None:
        by_reader, _ = checked(opened, own, before)
        lines += _of_reader(by_reader)
        found = [*by_reader.findings]
    stated = stated_findings(claims)
    return Verification(tuple(lines), ordered([*found, *(each for each in stated if each not in found)]))


def _of_reader(verdicts: Verdicts) -> Iterator[Line]:
    """Yield the verdicts on the reader's own requirements."""
    n = len(verdicts.identifiers)
    if n:
        yield Line("your policy: identifiers", None, n, False, "columns that you call identifiers are present")
    for verdict in verdicts.verdicts:
        holds = None if verdict.outcome == "unknown" else verdict.holds
        worst = None if math.isnan(verdict.worst) or holds is None else verdict.worst
        why = verdict.missing or (f"{verdict.classes} classes with {verdict.records} records fail" if not holds else "")
        yield Line(f"your policy: {verdict.asked}", None, worst, holds, why, required=True)


def require_certificate(path: str | Path) -> None:
    """Raise DataError if a file is not a certificate, before the long work starts."""
    _require_schema(_read(path))


def schema() -> dict[str, Any]:
    """Return the JSON schema of certificates."""
    return dict(_schema())


@cache
def _schema() -> dict[str, Any]:
    text = (files("shoal.report") / "certificate.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def _read(path: str | Path) -> Any:
    try:
        return read_json(read_bounded(path).decode("utf-8-sig"), _once)
    except OSError as error:
        raise DataError(f"certificate {path} cannot be read ({error.strerror})") from None
    except ValueError:
        raise DataError(
            f"the certificate {str(path)!r} is not JSON", "pass the certificate first, then the release"
        ) from None


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; reject repeated fields, because readers disagree about which one counts."""
    if len(found := dict(fields)) < len(fields):
        raise DataError("the certificate contains a field twice", "was it modified?")
    return found


def _require_schema(claims: Any) -> None:
    """Raise an error that names only the place: messages of the validator quote the values they reject."""
    if nested_deeper(claims, DEEPEST):
        raise DataError(f"the certificate is nested more than {DEEPEST} levels deep", "was it modified?")
    written = claims.get("schema") if isinstance(claims, Mapping) else None
    if isinstance(written, str) and written in EARLIER:
        raise DataError(
            f"the certificate has the format {written} of an earlier version of shoal; this version reads {SCHEMA}",
            EARLIER[written],
        )
    wrong = next(jsonschema.Draft202012Validator(_schema()).iter_errors(claims), None)
    if wrong is not None:
        place = ".".join(map(str, wrong.absolute_path)) or "the whole"
        raise DataError(
            f"the certificate does not match the schema {_schema()['$id']}: {place} ({wrong.validator})",
            "was it modified, or written by another version?",
        )


def _policy(claims: Mapping[str, Any]) -> Policy:
    try:
        return Policy.of(dict(claims["policy"]))
    except PolicyError as error:
        raise DataError(f"the certificate contains no valid policy: {error.message}", error.hint) from None


@dataclass(frozen=True, eq=False)
class _CountedRelease:
    """A release with its rows, or its distinct rows with their counts."""

    engine: Engine
    seen: LocalEngine

    @classmethod
    def of(cls, engine: Engine, policy: Policy) -> _CountedRelease:
        there = [name for name in (*policy.quasi, *policy.sensitive) if name in engine.columns]
        return cls(engine, engine.tally(there or engine.columns[:1]))

    def table(self, rows: Rows | Groups, policy: Policy, original: Engine | None) -> FrequencyTable:
        """The rows, or the counts of the engine."""
        return recounted(rows, policy, self.reference(policy, original))

    def reference(self, policy: Policy, original: Engine | None) -> Reference:
        """Return the sensitive values that the classes are compared with."""
        return Reference((self.seen if original is None else sensitive_of(original, policy)).domains(policy))


# ── what it says, line by line ──────────────────────────────────────────────────────────────────────────────


def _lines(
    claims: Mapping[str, Any],
    policy: Policy,
    release: _CountedRelease,
    original: Engine | None,
    findings: list[Finding],
) -> Iterator[Line]:
    """Yield the lines of what is counted, and add the findings of the recount."""
    source, output, engine = claims["input"], claims["output"], release.engine
    n, suppressed = release.seen.n_records, output["suppressed"]
    table = "not the same table, or the certificate belongs to a file"
    other = "not the same file, byte for byte" if engine.in_memory or engine.source else table
    yield _line("output.sha256", output["sha256"], release.seen.fingerprint, other)
    yield _line("output.records", output["records"], n)
    if wrong := _other_columns(engine.columns, policy):
        yield Line("columns", list(policy.columns), engine.columns, False, wrong)
        return  # the classes cannot be determined
    dropped = suppressed if policy.release.suppressed == "drop" else 0
    yield _line("input.records", source["records"], n + dropped, "released and dropped records do not add up to it")
    if original is not None:
        records = original.tallied(policy).n_records
        yield _line("original", source["records"], records, "the original has a different number of records")
    allowed = policy.allowance(source["records"])
    yield Line("output.suppressed", suppressed, f"at most {allowed}", suppressed <= allowed)
    left = [name for name in policy.identifiers if name in engine.columns]
    yield Line(
        "identifiers", 0, len(left), not left, "columns that should have been removed are present" if left else ""
    )
    limits = _Limits.of(policy, dropped, engine, original)
    found = owners_of(release.seen, original, policy) if limits.gaps.persons and original is not None else None
    rows = release.seen.countable() if found is None or found.rows is None else found.rows
    counted = release.table(rows, limits.known, original)
    if found is not None:
        limits = replace(limits, gaps=limits.gaps.known(found, counted))
    attacks = None if original is None else measured(in_order(engine, rows, policy), original, limits.known)
    verdicts = judge_release(counted, policy, attacks=attacks, mined=mine(rows, policy), gaps=limits.gaps)
    reference = release.reference(limits.known, original)
    stored, finer, spelled = judged_as_written(engine, policy, limits.known, reference, limits.gaps, verdicts)
    yield from _requirements(claims["requirements"], limits, stored.verdicts)
    yield from _measured(claims["measured"], policy, counted, limits)
    yield from _losses(claims, counted, policy)
    yield from _agreement(claims, policy)
    classes = counted if finer is None else finer
    evidence = of_table(engine, release.seen, classes, limits.known, original, spelled)
    findings += findings_of(evidence)
    if plain := policy.having("plain"):
        yield Line("columns.plain", None, list(plain), None, f"nothing protects {', '.join(map(repr, plain))}")
    for statement in compared_findings(claims, evidence):
        yield Line(*statement)
    for name in ("search", "versions", "created"):
        yield Line(name, None, None, None, STATED)


def _signature(claims: Mapping[str, Any], key: str | Path | Ed25519PublicKey | None) -> Line:
    """Check whether the certificate is signed, and with the expected key."""
    signature = claims.get("signature")
    whose = None if signature is None else signature["key"]
    if key is None:
        checked = "signed, not checked (verify it with the signer's public key)"
        why = "unsigned, so anyone may have written it" if signature is None else checked
        return Line("signature", whose, None, None, why)
    public = read_public(key) if isinstance(key, str | Path) else key
    holds, asked = signed_by(claims, public), key_fingerprint(public)
    why = "modified after it was signed" if whose == asked else "signed with another key"
    return Line("signature", whose, asked, holds, "" if holds else "unsigned" if whose is None else why)


def _files(claims: Mapping[str, Any], source: Any) -> Iterator[Line]:
    """Compare the digest of each file of a folder."""
    claimed = claims["output"].get("files")
    folder = Path(source) if isinstance(source, str | Path) else None
    if folder is None or not folder.is_dir():
        if claimed is not None:
            yield Line("output.files", len(claimed), None, None, "needs the folder that was published")
        return
    if claimed is None:
        yield Line("output.files", None, None, None, "the certificate has no digests of the files of a folder")
        return
    found = part_digests(folder)
    n = sum(found.get(name) != digest for name, digest in claimed.items())
    more = len(set(found) - set(claimed))
    wrong = f"{n} files were changed or are missing, {more} were added" if n or more else ""
    yield Line("output.files", len(claimed), len(found), not wrong, wrong)


def _source(
    claims: Mapping[str, Any],
    policy: Policy,
    receipt: Mapping[str, Any] | None,
    original: Engine | None,
) -> Iterator[Line]:
    """Check what the certificate says about the table that the release was made from."""
    digest, hierarchies = claims["input"]["hmac_sha256"], claims["hierarchies"]
    if receipt is None:
        yield Line("input.hmac_sha256", digest, None, None, "needs the receipt")
        yield Line("hierarchies", None, None, None, "needs the receipt")
        return
    key = key_of(receipt)
    yield _line("receipt", receipt["output"]["sha256"], claims["output"]["sha256"], "it belongs to another release")
    found = keyed(key, "input", receipt["input"]["sha256"])
    yield _line("input.hmac_sha256", digest, found, "the receipt belongs to another input")
    known = {name: keyed(key, f"hierarchy {name}", str(own)) for name, own in receipt["hierarchies"].items()}
    wrong = "" if known == hierarchies else "the receipt lists other hierarchies"
    yield Line("hierarchies", sorted(hierarchies), sorted(known), not wrong, wrong)
    if original is not None:
        if not original.in_memory:  # a table in a database has the digest of its counts
            require_columns(original.columns, policy)
        found = keyed(key, "input", original.tallied(policy).fingerprint)
        yield _line("original.hmac_sha256", digest, found, "not the table that the release was made from")


def _other_columns(there: list[str], policy: Policy) -> str:
    """Describe mismatches in the columns of the file; identifiers in the release have their own line."""
    strange = [name for name in there if name not in policy.columns]
    absent = [name for name in (*policy.quasi, *policy.sensitive) if name not in there]
    told = [f"the policy has no {', '.join(map(repr, strange))}"] if strange else []
    return "; ".join(told + ([f"the file has no {', '.join(map(repr, absent))}"] if absent else []))


def _agreement(claims: Mapping[str, Any], policy: Policy) -> Iterator[Line]:
    """Check that repeated statements of a certificate agree."""
    yield _line("seed", claims["seed"], policy.release.seed, "differs from the policy")
    named = (claims.get("preset") or {}).get("name")
    if named is not None or policy.preset is not None:
        same = named == policy.preset
        yield Line("preset", named, policy.preset, same, "" if same else "differs from the policy")
    levels = claims["levels"]
    if set(levels) != set(policy.quasi):
        yield Line("levels", sorted(levels), sorted(policy.quasi), False, "these are not the quasi-identifiers")
    elif low := [name for name in policy.quasi if _below(levels[name], policy.columns[name].min_level)]:
        yield Line("levels", [levels[name] for name in low], low, False, "lower than the policy's min_level")
    else:
        yield Line("levels", None, None, None, STATED)
    if claims.get("attacks"):
        yield Line("attacks", None, None, None, "needs the original")
    elif policy.limits:
        yield Line("attacks", None, None, False, "the policy limits the results of attacks, but no attack is reported")


def _below(level: int | str | None, least: int) -> bool:
    return isinstance(level, int) and level < least  # nothing is above the top


def _line(name: str, claimed: Any, found: Any, wrong: str = "") -> Line:
    holds = _same(claimed, found)
    return Line(name, claimed, found, holds, "" if holds else wrong)


def _same(claimed: Any, found: Any) -> bool:
    """Compare figures: sums of floats may differ in the last digits, and JSON uses texts for infinite values."""
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
    """What cannot be checked without the original, the population, or the identity of people."""

    policy: Policy
    gaps: Gaps

    @classmethod
    def of(cls, policy: Policy, dropped: int, engine: Engine, original: Engine | None) -> _Limits:
        """``dropped`` is the number of original records that are not in the release, according to the certificate."""
        unknown, _ = Gaps.of(policy, engine.columns, order_of(engine, original))
        missing = {
            name: f"needs the hierarchy of {name!r}, which a policy of your own can name"
            for name, column in policy.columns.items()
            if column.role == "sensitive" and isinstance(column.hierarchy, UnopenedFile)
        }
        whole = f"needs the original, because {dropped} records were dropped" if dropped and original is None else ""
        return cls(
            policy,
            replace(unknown, whole=whole, dropped=dropped, population="needs the population", hierarchies=missing),
        )

    @property
    def known(self) -> Policy:
        """The policy without the hierarchies that are not available."""
        columns = {
            name: column.model_copy(update={"hierarchy": None}) if name in self.gaps.hierarchies else column
            for name, column in self.policy.columns.items()
        }
        return self.policy.model_copy(update={"columns": columns})

    def told(self, name: str, found: float) -> float:
        """Round a figure as the certificate does: to two digits if it depends on more than the release."""
        value: float = rounded(found) if needs_more(name, self.policy, self.gaps.dropped) else found
        return value

    def of_figure(self, name: str, column: str | None = None) -> str:
        """Return why a figure cannot be recounted; empty if it can."""
        if name in OF_POPULATION:
            return self.gaps.population
        if name in OF_HOUSEHOLDS and self.policy.release.household is not None:
            return f"needs the column {self.policy.release.household!r}, which identifies households"
        if name in _OF_PERSONS:
            return self.gaps.persons
        if name in OF_ORIGINAL and self.gaps.whole:
            return self.gaps.whole
        if name == "t":
            covered = list(self.gaps.hierarchies) if column is None else [column]
            return next((self.gaps.hierarchies[each] for each in covered if each in self.gaps.hierarchies), "")
        return ""


# What counting records instead of persons gives if persons are unknown: an upper or a lower bound of the figure.
_OF_PERSONS: dict[str, Bound] = {
    "k": "most",
    "uniques": "least",
    "sample_uniqueness": "least",
    "risk_max": "least",
    "risk_mean": "least",
}


def _requirements(claimed: list[Any], limits: _Limits, found: Sequence[Verdict]) -> Iterator[Line]:
    policy, gaps = limits.policy, limits.gaps
    told = [claim["asked"] for claim in claimed]
    asked = [verdict.asked for verdict in found]
    if told != asked and (
        policy.forbid or told != asked[: len(policy.models)]
    ):  # older certificates list limits only under attacks
        yield Line("requirements", told, asked, False, "the requirements differ from those of the policy")
    claims: list[Any] = claimed if told == asked[: len(told)] else []
    exact = [not gaps.of_model(model, policy.sensitive) for model in policy.models]
    for verdict, claim, counted in zip_longest(found, claims, exact):
        yield _requirement(verdict, claim, bool(counted), limits)


def _requirement(verdict: Verdict, claim: Mapping[str, Any] | None, counted: bool, limits: _Limits) -> Line:
    """Compare a verdict with the claimed one; figures are compared if the same data was ``counted``.

    Figures of attacks are not compared: the maker of the release knew the owner of each record, and scored with that.
    """
    worst = None if claim is None else claim["worst"]
    found = None if math.isnan(verdict.worst) or verdict.outcome == "unknown" else verdict.worst
    holds: bool | None = None if verdict.outcome == "unknown" else verdict.holds
    why = verdict.missing
    if verdict.outcome == "fails":
        why = f"{verdict.classes} classes with {verdict.records} records fail" if verdict.classes else "it fails"
    elif claim is not None and not claim["holds"]:
        holds, why = False, "the certificate itself says that it does not hold"
    elif claim is not None and holds and counted and not _same_verdict(claim, verdict, limits):
        holds, why = False, "its figure, verdict or numbers of failing classes and records differ"
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
        return Line(name, claimed, found, False, "there cannot be more people than records")
    if why:
        return Line(name, claimed, None, None, why)
    if found is None:
        return Line(name, claimed, None, False, "unknown figure")
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
    """Check the two losses that depend only on class sizes; the others need to know what was lost."""
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
            yield Line(f"loss.{name}", value, None, None, STATED)
