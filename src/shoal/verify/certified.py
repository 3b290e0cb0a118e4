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
from shoal.judge import Gaps, as_attackers_see, judge_release
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
    readers_policy = None if policy is None else policy_of(policy)
    certified_policy = with_files_of(_policy(claims), readers_policy)
    owners_receipt = None if receipt is None else read_receipt(receipt)
    signature = _signature(claims, key)
    opened = engine_of(data, separator=separator, encoding=encoding, header=header)
    before = None if original is None else engine_of(original)
    engine = opened.reading(certified_policy)
    truth = None if before is None else before.reading(certified_policy).coarsened(certified_policy)
    findings: list[Finding] = []
    counted = _lines(claims, certified_policy, _CountedRelease.of(engine, certified_policy), truth, findings)
    lines = [
        *counted,
        *_files(claims, engine.source),
        signature,
        *_source(claims, certified_policy, owners_receipt, truth),
    ]
    if readers_policy is not None:
        by_reader, _ = checked(opened, readers_policy, before)
        lines += _of_reader(by_reader)
        findings = [*by_reader.findings]
    stated = stated_findings(claims)
    return Verification(tuple(lines), ordered([*findings, *(finding for finding in stated if finding not in findings)]))


def _of_reader(verdicts: Verdicts) -> Iterator[Line]:
    """Yield the verdicts on the reader's own requirements."""
    n = len(verdicts.identifiers)
    if n:
        yield Line("your policy: identifiers", None, n, False, "columns that you call identifiers are present")
    for verdict in verdicts.verdicts:
        holds = None if verdict.outcome == "unknown" else verdict.holds
        worst = None if math.isnan(verdict.worst) or holds is None else verdict.worst
        reason = verdict.missing or (
            f"{verdict.classes} classes with {verdict.records} records fail" if not holds else ""
        )
        yield Line(f"your policy: {verdict.asked}", None, worst, holds, reason, required=True)


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
        return read_json(read_bounded(path).decode("utf-8-sig"), _unrepeated)
    except OSError as error:
        raise DataError(f"certificate {path} cannot be read ({error.strerror})") from None
    except ValueError:
        raise DataError(
            f"the certificate {str(path)!r} is not JSON", "pass the certificate first, then the release"
        ) from None


def _unrepeated(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; reject repeated fields, because readers disagree about which one counts."""
    if len(members := dict(fields)) < len(fields):
        raise DataError("the certificate contains a field twice", "was it modified?")
    return members


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
        path = ".".join(map(str, wrong.absolute_path)) or "the whole"
        raise DataError(
            f"the certificate does not match the schema {_schema()['$id']}: {path} ({wrong.validator})",
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
    rows_or_tally: LocalEngine

    @classmethod
    def of(cls, engine: Engine, policy: Policy) -> _CountedRelease:
        present = [name for name in (*policy.quasi, *policy.sensitive) if name in engine.columns]
        return cls(engine, engine.tally(present or engine.columns[:1]))

    def table(self, rows: Rows | Groups, policy: Policy, original: Engine | None) -> FrequencyTable:
        """The rows, or the counts of the engine."""
        return recounted(rows, policy, self.reference(policy, original))

    def reference(self, policy: Policy, original: Engine | None) -> Reference:
        """Return the sensitive values that the classes are compared with."""
        return Reference((self.rows_or_tally if original is None else sensitive_of(original, policy)).domains(policy))


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
    n, suppressed = release.rows_or_tally.n_records, output["suppressed"]
    table = "not the same table, or the certificate belongs to a file"
    other = "not the same file, byte for byte" if engine.in_memory or engine.source else table
    yield _line("output.sha256", output["sha256"], release.rows_or_tally.fingerprint, other)
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
    owners = (
        owners_of(release.rows_or_tally, original, policy) if limits.gaps.persons and original is not None else None
    )
    rows = release.rows_or_tally.countable() if owners is None or owners.rows is None else owners.rows
    counted = release.table(rows, limits.known, original)
    if owners is not None:
        limits = replace(limits, gaps=limits.gaps.known(owners, counted))
    attacks = None if original is None else measured(in_order(engine, rows, policy), original, limits.known)
    verdicts = judge_release(counted, policy, attacks=attacks, mined=mine(rows, policy), gaps=limits.gaps)
    reference = release.reference(limits.known, original)
    stored, finer, spelled = judged_as_written(engine, policy, limits.known, reference, limits.gaps, verdicts)
    yield from _requirements(claims["requirements"], limits, stored.verdicts)
    yield from _measured(claims["measured"], policy, counted, limits)
    yield from _losses(claims, counted, policy)
    yield from _agreement(claims, policy)
    classes = counted if finer is None else finer
    evidence = of_table(engine, release.rows_or_tally, classes, limits.known, original, spelled)
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
    signer = None if signature is None else signature["key"]
    if key is None:
        checked = "signed, not checked (verify it with the signer's public key)"
        reason = "unsigned, so anyone may have written it" if signature is None else checked
        return Line("signature", signer, None, None, reason)
    public = read_public(key) if isinstance(key, str | Path) else key
    holds, expected_signer = signed_by(claims, public), key_fingerprint(public)
    reason = "modified after it was signed" if signer == expected_signer else "signed with another key"
    return Line("signature", signer, expected_signer, holds, "" if holds else "unsigned" if signer is None else reason)


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
    digests = part_digests(folder)
    n = sum(digests.get(name) != digest for name, digest in claimed.items())
    n_added = len(set(digests) - set(claimed))
    wrong = f"{n} files were changed or are missing, {n_added} were added" if n or n_added else ""
    yield Line("output.files", len(claimed), len(digests), not wrong, wrong)


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
    recounted = keyed(key, "input", receipt["input"]["sha256"])
    yield _line("input.hmac_sha256", digest, recounted, "the receipt belongs to another input")
    digests = {name: keyed(key, f"hierarchy {name}", str(digest)) for name, digest in receipt["hierarchies"].items()}
    wrong = "" if digests == hierarchies else "the receipt lists other hierarchies"
    yield Line("hierarchies", sorted(hierarchies), sorted(digests), not wrong, wrong)
    if original is not None:
        if not original.in_memory:  # a table in a database has the digest of its counts
            require_columns(original.columns, policy)
        recounted = keyed(key, "input", original.tallied(policy).fingerprint)
        yield _line("original.hmac_sha256", digest, recounted, "not the table that the release was made from")


def _other_columns(present: list[str], policy: Policy) -> str:
    """Describe mismatches in the columns of the file; identifiers in the release have their own line."""
    strange = [name for name in present if name not in policy.columns]
    absent = [name for name in (*policy.quasi, *policy.sensitive) if name not in present]
    reasons = [f"the policy has no {', '.join(map(repr, strange))}"] if strange else []
    return "; ".join(reasons + ([f"the file has no {', '.join(map(repr, absent))}"] if absent else []))


def _agreement(claims: Mapping[str, Any], policy: Policy) -> Iterator[Line]:
    """Check that repeated statements of a certificate agree."""
    yield _line("seed", claims["seed"], policy.release.seed, "differs from the policy")
    named = (claims.get("preset") or {}).get("name")
    if named is not None or policy.preset is not None:
        is_preset = named == policy.preset
        yield Line("preset", named, policy.preset, is_preset, "" if is_preset else "differs from the policy")
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


def _below(level: int | str | None, minimum: int) -> bool:
    return isinstance(level, int) and level < minimum  # nothing is above the top


def _line(name: str, claimed: Any, counted: Any, wrong: str = "") -> Line:
    holds = _agrees(claimed, counted)
    return Line(name, claimed, counted, holds, "" if holds else wrong)


def _agrees(claimed: Any, counted: Any) -> bool:
    """Compare figures: sums of floats may differ in the last digits, and JSON uses texts for infinite values."""
    if isinstance(counted, bool | str) or (isinstance(claimed, bool | str) and claimed not in ("inf", "-inf")):
        return type(claimed) is type(counted) and bool(claimed == counted)
    if claimed is None:
        return counted is None or math.isnan(counted)
    if isinstance(claimed, int) and isinstance(counted, int):
        return claimed == counted  # counts are exact, and a seed may have hundreds of digits
    try:
        claimed = float(claimed)
    except OverflowError:  # beyond all figures
        return False
    return claimed == counted or math.isclose(claimed, counted, rel_tol=1e-9, abs_tol=1e-12)


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

    def bounded(self, name: str, figure: float) -> float:
        """Round a figure as the certificate does: to two digits if it depends on more than the release."""
        value: float = rounded(figure) if needs_more(name, self.policy, self.gaps.dropped) else figure
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
            return next((self.gaps.hierarchies[name] for name in covered if name in self.gaps.hierarchies), "")
        return ""


# What counting records instead of persons gives if persons are unknown: an upper or a lower bound of the figure.
_OF_PERSONS: dict[str, Bound] = {
    "k": "most",
    "uniques": "least",
    "sample_uniqueness": "least",
    "risk_max": "least",
    "risk_mean": "least",
}


def _requirements(claimed: list[Any], limits: _Limits, verdicts: Sequence[Verdict]) -> Iterator[Line]:
    policy, gaps = limits.policy, limits.gaps
    claimed_requirements = [claim["asked"] for claim in claimed]
    requirements = [verdict.asked for verdict in verdicts]
    if claimed_requirements != requirements and (
        policy.forbid or claimed_requirements != requirements[: len(policy.models)]
    ):  # older certificates list limits only under attacks
        yield Line(
            "requirements",
            claimed_requirements,
            requirements,
            False,
            "the requirements differ from those of the policy",
        )
    claims: list[Any] = claimed if claimed_requirements == requirements[: len(claimed_requirements)] else []
    exact = [not gaps.of_model(model, policy.sensitive) for model in policy.models]
    for verdict, claim, counted in zip_longest(verdicts, claims, exact):
        yield _requirement(verdict, claim, bool(counted), limits)


def _requirement(verdict: Verdict, claim: Mapping[str, Any] | None, counted: bool, limits: _Limits) -> Line:
    """Compare a verdict with the claimed one; figures are compared if the same data was ``counted``.

    Figures of attacks are not compared: the maker of the release knew the owner of each record, and scored with that.
    """
    claimed = None if claim is None else claim["worst"]
    worst = None if math.isnan(verdict.worst) or verdict.outcome == "unknown" else verdict.worst
    holds: bool | None = None if verdict.outcome == "unknown" else verdict.holds
    reason = verdict.missing
    if verdict.outcome == "fails":
        reason = f"{verdict.classes} classes with {verdict.records} records fail" if verdict.classes else "it fails"
    elif claim is not None and not claim["holds"]:
        holds, reason = False, "the certificate itself says that it does not hold"
    elif claim is not None and holds and counted and not _same_verdict(claim, verdict, limits):
        holds, reason = False, "its figure, verdict or numbers of failing classes and records differ"
    return Line(f"requirement: {verdict.asked}", claimed, worst, holds, reason, required=True)


def _same_verdict(claim: Mapping[str, Any], verdict: Verdict, limits: _Limits) -> bool:
    is_equal = all(_agrees(claim[part], getattr(verdict, part)) for part in ("figure", "classes", "records"))
    return is_equal and _agrees(claim["worst"], limits.bounded(verdict.figure, verdict.worst))


def _measured(claimed: Mapping[str, Any], policy: Policy, table: FrequencyTable, limits: _Limits) -> Iterator[Line]:
    recounted = _figures(table, policy, limits)
    overall = {name: limits.bounded(name, value) for name, value in recounted.overall.items()}
    for name, value in claimed.items():
        if name == "columns":
            continue
        yield _figure(f"measured.{name}", value, overall.get(name), limits.of_figure(name), _OF_PERSONS.get(name))
    for column, values in claimed["columns"].items():
        bounded_figures = {
            name: limits.bounded(name, value) for name, value in recounted.columns.get(column, {}).items()
        }
        for name, value in values.items():
            yield _figure(
                f"measured.columns.{column}.{name}", value, bounded_figures.get(name), limits.of_figure(name, column)
            )


def _figure(name: str, claimed: Any, figure: float | None, reason: str, bound: Bound | None = None) -> Line:
    if (
        reason
        and bound
        and figure is not None
        and claimed is not None
        and not _is_within(float(claimed), figure, bound)
    ):
        return Line(name, claimed, figure, False, "there cannot be more people than records")
    if reason:
        return Line(name, claimed, None, None, reason)
    if figure is None:
        return Line(name, claimed, None, False, "unknown figure")
    return _line(name, claimed, figure)


def _is_within(claimed: float, figure: float, bound: Bound) -> bool:
    slack = 1e-9 * abs(figure) + 1e-12
    return claimed <= figure + slack if bound == "most" else claimed >= figure - slack


def _figures(table: FrequencyTable, policy: Policy, limits: _Limits) -> Figures:
    distances: dict[str, str] = {}
    l = 2
    for model in policy.models:
        if isinstance(model, TCloseness) and not limits.gaps.of_model(model, policy.sensitive):
            distances |= dict.fromkeys([model.column] if model.column else policy.sensitive, model.distance)
        if isinstance(model, RecursiveDiversity):
            l = model.l
    return figures(table, l=l, distances=distances, attacker_view=as_attackers_see(table, policy))


def _losses(claims: Mapping[str, Any], table: FrequencyTable, policy: Policy) -> Iterator[Line]:
    """Check the two losses that depend only on class sizes; the others need to know what was lost."""
    n, suppressed = claims["input"]["records"], claims["output"]["suppressed"]
    sizes = table.counts.tolist()
    recounted_losses = {
        "discernibility": float(sum(size * size for size in sizes) + n * suppressed),
        "average-class": n / (len(sizes) + (suppressed > 0)),
    }
    for name, value in claims["loss"].items():
        if name in recounted_losses and (policy.release.suppressed == "drop" or not suppressed):
            yield _line(f"loss.{name}", value, recounted_losses[name])
        else:
            yield Line(f"loss.{name}", value, None, None, STATED)
