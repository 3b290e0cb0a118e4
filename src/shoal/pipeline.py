"""The whole pipeline on one screen: rows → frequency table → recoding → released rows → verification → release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.attacks.limits import measured
from shoal.engines.base import Counted, Engine, Query, Rows
from shoal.engines.data import Data
from shoal.engines.formats.atomic_files import write_text
from shoal.engines.local import LocalEngine
from shoal.engines.opening import engine_of, order_of_release, population_of, rows_of
from shoal.errors import PolicyError, no_column
from shoal.findings import Finding, finding, findings_of, ordered
from shoal.findings.evidence import of_release
from shoal.forbidden.mining import mine
from shoal.hierarchies.spelling import Spelling
from shoal.judge import Gaps, as_attackers_see, judge_release, require
from shoal.judge.figures import Figures, figures
from shoal.judge.recount import Reference, recounted, recounted_by
from shoal.models.closeness import DISTANCES, TCloseness
from shoal.models.diversity import RecursiveDiversity
from shoal.models.verdict import Verdicts
from shoal.policy import Policy, PolicySource, policy_of
from shoal.policy.aiming import aimed
from shoal.recoding import Recoding
from shoal.recoding.label_style import shows_hidden_decimals, with_whole_numbers
from shoal.release import Release, refuse_to_overwrite
from shoal.risk.households import household_figures
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.losses.cells import losses
from shoal.search.losses.sensitive import sensitive_losses
from shoal.search.problem import Progress, silent
from shoal.tables.domain import domain_of
from shoal.tables.frequency import FrequencyTable
from shoal.text.log import log, logged
from shoal.text.showing import represent
from shoal.verify.check import checked

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks
    from shoal.search.full_domain.visits import Visits


def anonymize(
    data: Data,
    policy: PolicySource | None = None,
    *,
    k: int | None = None,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    plain: Sequence[str] = (),
    l: int | None = None,
    t: float | None = None,
    strict: bool = False,
    progress: Progress = silent,
    visits: Visits | None = None,
) -> Release:
    """Turn a table into a release that satisfies the policy, with the least information loss the algorithm finds.

    Without a policy, give ``k`` and ``quasi``. Columns that you do not name get the role that ``inspect`` proposes, and
    a note of the release says which.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    policy
        A ``Policy``, the path of a TOML file, or a dict.
    k
        The least number of people in every class, if there is no policy.
    quasi
        The columns that outsiders could link on, if there is no policy.
    sensitive
        The columns that nobody should learn, if there is no policy.
    plain
        The columns to publish as they are, if there is no policy.
    l
        The least number of different values of each sensitive column in every class (distinct ℓ-diversity).
    t
        The largest distance of a class's sensitive values from those of the whole (t-closeness).
    strict
        Refuse a release that satisfies the policy but must not be published.
    progress
        Called with the current task and the share of it that is done.
    visits
        Records the nodes of the lattice that the search evaluates.

    Returns
    -------
    Release
        The released rows, with verdicts, figures, findings and a certificate.

    Raises
    ------
    InfeasibleError
        If no release satisfies the policy.
    PublicationError
        With ``strict``, if the release must not be published.
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 32, 33, 34, 41, 42, 43, 44], "disease": ["flu", "hiv"] * 4})
    >>> release = shoal.anonymize(people, k=2, quasi=["age"], sensitive=["disease"])
    >>> sorted(set(release.table["age"].to_pylist())), release.measured["k"]
    (['31-41', '41-44'], 4)
    """
    policy, proposed = _given_or_proposed(data, policy, k, quasi, sensitive, plain, l, t)
    if policy.release.aim and policy.limits:
        release = aimed(policy, lambda stricter: anonymize(data, stricter, progress=progress, visits=visits))
        if strict:
            release.verdicts.require_publishable()
        return release
    uncoarsened = engine_of(data, policy)
    engine = uncoarsened.coarsened(policy)
    progress = logged(progress)
    log.info("anonymize: %d quasi-identifiers, algorithm %s", len(policy.quasi), policy.release.algorithm)
    outside = population_of(policy)
    counted, problem, population, recoding = _solved(engine, policy, outside, progress, visits)
    if policy.enforced:
        from shoal.forbidden.suppress_forbidden import with_hidden_results  # SciPy, which few policies need

        recoding = with_hidden_results(engine, counted, recoding, policy)
    loss = losses(problem, recoding)
    del problem  # with the tables of all nodes that were evaluated: rows take their place
    progress("recoding", 0)
    rows, reference, released, attacks, verdicts = finished(engine, counted, recoding, policy, population)
    require(verdicts)  # raises before anything is written
    evidence = of_release(engine, counted, rows, recoding, released, policy, loss["loss"], attacks)
    verdicts = replace(verdicts, findings=ordered([*findings_of(evidence), *proposed]))
    if strict:
        verdicts.require_publishable()
    if policy.coarsened:
        finer = uncoarsened.tally(policy.sensitive)
        loss |= sensitive_losses(finer, released, policy, counted.n_records, loss["loss"])
    log.info("anonymize: %d records in %d classes satisfy the policy", released.n_records, released.n_classes)
    return Release(
        rows,
        engine,
        counted,
        recoding,
        policy,
        reference,
        verdicts,
        _figures(released, policy).extended(household_figures(engine, rows, released, policy)),
        loss,
        recoding.parts(counted.table).n_suppressed,
        attacks,
    )


def _given_or_proposed(
    data: Data,
    policy: PolicySource | None,
    k: int | None,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    plain: Sequence[str],
    l: int | None,
    t: float | None,
) -> tuple[Policy, tuple[Finding, ...]]:
    """Return the given policy, or build one from k and the roles of columns, with findings about what was proposed."""
    if policy is not None:
        if any(parameter is not None for parameter in (k, l, t)) or quasi or sensitive or plain:
            raise PolicyError("pass either a policy or k, quasi, sensitive, plain, l and t, not both")
        return policy_of(policy), ()
    if k is None or not quasi:
        raise PolicyError(
            "no requirements: there is no policy, and k or quasi is missing",
            'anonymize(data, k=5, quasi=["age", "zip"], sensitive=["disease"]), or pass a policy',
        )
    from shoal.inspection.inspect import policy_for

    built, inspection = policy_for(data, k=k, quasi=quasi, sensitive=sensitive, plain=plain, l=l, t=t)
    roles = inspection.proposed_roles({*quasi, *sensitive, *plain})
    return built, tuple(finding("proposed-roles", fact, remedy) for fact, remedy in roles)


def _solved(
    engine: Engine, policy: Policy, outside: LocalEngine | None, progress: Progress, visits: Visits | None
) -> tuple[Counted, Problem, FrequencyTable | None, Recoding]:
    """Count and search; repeat if the labels of the solution reveal a suppressed record."""
    solution = _searched(engine, policy, outside, progress, visits)
    counted, _, population, recoding = solution
    written = with_whole_numbers(policy, counted.table, recoding, population, counted.raised)
    if written is policy:
        return solution
    again = _searched(engine, written, outside, progress, visits)
    if not shows_hidden_decimals(again[0].table, again[3], written, again[0].raised):
        return again
    return _searched(engine, policy, outside, progress, visits)  # labels that contain their values come first


def _searched(
    engine: Engine, policy: Policy, outside: LocalEngine | None, progress: Progress, visits: Visits | None
) -> tuple[Counted, Problem, FrequencyTable | None, Recoding]:
    progress("counting", 0)
    algorithm = policy.release.algorithm
    counted = engine.count(policy, outside, apart=algorithm in PARTING)  # rows → frequency table
    population = None if outside is None else outside.people(policy, counted.table.hierarchies)
    if visits is not None:
        visits.clear()
    problem = Problem.of(counted.table, policy, population=population, progress=progress, visits=visits)
    return counted, problem, population, SEARCHES[algorithm](problem)  # frequency table → recoding


def finished(
    engine: Engine, counted: Counted, recoding: Recoding, policy: Policy, population: FrequencyTable | None
) -> tuple[Rows | Query, Reference, FrequencyTable, Attacks | None, Verdicts]:
    """Apply a solution to the rows that were counted; recount, attack and judge the result."""
    rows = engine.apply(counted, recoding, policy)  # rows → released rows
    reference = Reference(counted.rows.domains(policy), population, policy.marks)
    released = recounted(rows, policy, reference)
    attacks = measured(rows, engine, policy)  # if the policy limits the success of attacks
    gaps, _ = Gaps.of(policy, engine.columns, order_of_release(engine, policy))
    verdicts = judge_release(released, policy, attacks=attacks, mined=mine(rows, policy), gaps=gaps)
    return rows, reference, released, attacks, verdicts


def check(
    data: Data,
    policy: PolicySource,
    *,
    original: Data | None = None,
    previous: Sequence[Data] = (),
    report: str | Path | None = None,
    strict: bool = False,
    force: bool = False,
) -> Verdicts:
    """Check whether a table satisfies a policy as it is; identifiers must have been removed.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    policy
        A ``Policy``, the path of a TOML file, or a dict.
    original
        The table that the release was made from: distributions are compared with it, and limits on attacks need it.
    previous
        Other releases of the same people: the policy must hold for someone who has all; needs ``original``.
    report
        The path of an HTML file that says what fails, where and what to do, without a value from the table.
    strict
        Refuse a table that must not be published.
    force
        Overwrite the report.

    Returns
    -------
    Verdicts
        A verdict for each requirement, findings, and whether the table may be published.

    Raises
    ------
    PublicationError
        With ``strict``, if the table must not be published.
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> policy = {
    ...     "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    ...     "require": [{"model": "k-anonymity", "k": 2}],
    ... }
    >>> shoal.check(people, policy).outcome
    'fails'
    >>> shoal.check(shoal.anonymize(people, policy).table, policy).holds
    True
    """
    policy = policy_of(policy)
    if previous and original is None:
        raise PolicyError(
            "earlier releases can only be compared with the original at hand", "pass the original table too"
        )
    if report is not None:
        refuse_to_overwrite(data, report)
    verdicts, table = checked(data, policy, original)
    if previous and original is not None:
        from shoal.verify.several_releases import together

        joint = together(original, [data, *previous], policy)
        verdicts = replace(verdicts, verdicts=(*verdicts.verdicts, *joint.verdicts))
    if report is not None:
        write_text(Path(report), represent(verdicts, "verdict page", table, policy), force=force)
    if strict:
        verdicts.require_publishable()
    return verdicts


def measure(
    data: Data,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    l: int = 2,
    distance: str = "equal",
    population: Data | None = None,
    missing: Sequence[str] = (),
) -> Figures:
    """Measure which requirements a table satisfies as it is: k, ℓ, t and related figures, and the risks.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    quasi
        The columns that outsiders could link on.
    sensitive
        The columns that nobody should learn.
    l
        The ℓ of ``recursive_c``.
    distance
        The distance of ``t``.
    population
        A table of the population that the records are from, whose figures are included.
    missing
        Texts that mean a missing value, as in a policy.

    Returns
    -------
    Figures
        The figures by name, as in ``figures["k"]``.

    Raises
    ------
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> figures = shoal.measure(people, quasi=["age"], sensitive=["disease"])
    >>> figures["k"], figures["l"]
    (1, 1)
    """
    spellings = dict.fromkeys((*quasi, *sensitive), Spelling(tuple(missing)))
    engine = engine_of(data).spelled(spellings)
    for name in (*quasi, *sensitive):
        if name not in engine.columns:
            raise no_column("the table", [name], engine.columns)
    if not quasi:
        raise PolicyError("quasi: specify at least one column that an intruder could link on")
    if l < 1:
        raise PolicyError("l: must be at least 1")
    if distance not in DISTANCES:
        raise PolicyError(f"distance: unknown distance {distance!r}", f"distances: {', '.join(DISTANCES)}")
    tallied = engine.tally([*quasi, *sensitive])
    whole = {name: domain_of(name, tallied.coded(name), None, tallied.weights)[0] for name in sensitive}
    people = None if population is None else rows_of(population).spelled(spellings).values(quasi)
    table = recounted_by(quasi, tallied.countable(), Reference(whole, people))
    return figures(table, l=l, distances=dict.fromkeys(sensitive, distance))


def _figures(table: FrequencyTable, policy: Policy) -> Figures:
    """Return the figures, with the distances and the ℓ of the policy."""
    distances: dict[str, str] = {}
    l = 2
    for model in policy.models:
        if isinstance(model, TCloseness):
            distances |= dict.fromkeys([model.column] if model.column else policy.sensitive, model.distance)
        if isinstance(model, RecursiveDiversity):
            l = model.l
    return figures(table, l=l, distances=distances, attacker_view=as_attackers_see(table, policy))
