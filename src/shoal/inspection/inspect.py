"""Inspect an unknown table: the role of each column, the columns that identify people, and a policy to start from.

Roles are guessed from names, value formats and counts, by what an outsider could know; each guess has a confidence, and
the most important decisions come first. How well a set of columns identifies people is counted, not guessed. The
result contains no value from the data.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.engines.data import Data
from shoal.engines.frames import nested_columns
from shoal.engines.opening import engine_of
from shoal.errors import PolicyError, no_column
from shoal.hierarchies.spelling import INFINITE, Spelling, guess, missing_texts
from shoal.inspection.companions import Battery, batteries, companion_guesses
from shoal.inspection.decisions import decisions
from shoal.inspection.hierarchy_proposal import HIDDEN_OR_SETS, propose
from shoal.inspection.inspection import InspectedColumn, Inspection, Purpose
from shoal.inspection.persons import household_key, person_key
from shoal.inspection.roles import AS_TOLD, NOTHING_ELSE, Guess, RawColumn, roles_of
from shoal.inspection.sensitive import sensitive_column
from shoal.inspection.sources import TableInEngine, TableInMemory
from shoal.inspection.trial import tried
from shoal.models.size import KAnonymity
from shoal.notation.same_values import spelled_alike
from shoal.policy import Policy
from shoal.policy.column import Role
from shoal.text.log import log

COMPANIONS_OF_COMPANIONS = 3  # times that columns are looked for which tell quasi columns, those that were found too
KEPT = 10  # times as much a column counts that a study needs
ROLES_GIVEN: dict[str, Role] = {"known": "quasi", "sensitive": "sensitive", "plain": "plain"}


def inspect(
    data: Data,
    *,
    known: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    plain: Sequence[str] = (),
    keep: Sequence[str] = (),
    purpose: str = "analysis",
) -> Inspection:
    """Guess the roles of the columns of a table, and count who stands out; in an engine its rows stay there.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    known
        Columns that outsiders know; the others are guessed.
    sensitive
        Columns that nobody should learn.
    plain
        Columns to be published as they are.
    keep
        Columns that a study needs as fine as possible.
    purpose
        ``"analysis"``, where every group of records is coarsened for itself, or ``"tables"``, with the same bins in the
        whole column.

    Returns
    -------
    Inspection
        The roles with reasons, uniqueness, and a policy to edit.

    Raises
    ------
    PolicyError
        If a column has two roles, or the purpose is unknown.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> found = shoal.inspect(people)
    >>> {column.name: column.role for column in found.columns}
    {'age': 'quasi', 'disease': 'sensitive'}
    """
    return _inspected(data, known, sensitive, plain, keep, purpose)


def _inspected(
    data: Data,
    known_columns: Sequence[str],
    sensitive: Sequence[str],
    plain: Sequence[str],
    keep: Sequence[str],
    purpose: str,
    k: int | None = None,
) -> Inspection:
    """Return what ``inspect`` does; the requirements on sensitive columns are tried with ``k``, if it is given."""
    if purpose not in ("analysis", "tables"):
        raise PolicyError(f"purpose: unknown purpose {purpose!r}", "purposes: analysis, tables")
    engine = engine_of(data)
    source: TableInMemory | TableInEngine = (
        TableInMemory(engine.table, engine.codebook) if engine.in_memory else TableInEngine(engine)
    )
    raw = source.columns()
    roles = _roles_given({"known": known_columns, "sensitive": sensitive, "plain": plain, "keep": keep}, raw)
    texts = {column.name: column.texts for column in raw if column.name in source.text_columns}
    texts |= {column.name: column.texts for column in raw if not set(INFINITE).isdisjoint(column.texts)}
    spellings = {name: guess(found) for name, found in texts.items()}
    missing, with_own_texts = missing_texts(spellings, texts)
    if strange := {name: spelling for name, spelling in spellings.items() if not spelling.is_plain}:
        source = source.spelled(strange)
        again = {column.name: column for column in source.columns(list(strange))}
        raw = [again.get(column.name, column) for column in raw]
    key, household = person_key(raw, source.n_tuples), household_key(raw)
    entity = key if key not in roles else None
    nested = nested_columns(engine.table) if engine.in_memory else []
    guesses, groups = _guesses(raw, roles, {entity: "persons", household: "households"}, source, nested)
    columns = tuple(
        _column(
            column,
            guesses[column.name],
            keep,
            spellings.get(column.name),
            missing_apart=column.name in with_own_texts,
            in_memory=engine.in_memory,
        )
        for column in raw
    )
    quasi = [column for column in raw if guesses[column.name].role == "quasi"]
    log.info("inspect: %d columns, %d of them quasi", len(raw), len(quasi))
    proposal = tried(
        engine,
        Inspection(
            raw[0].records if raw else 0,
            columns,
            source.separations(quasi),
            entity,
            household if household not in roles else None,
            decisions(columns, groups, raw[0].records if raw else 0, source.n_unique),
            "tables" if purpose == "tables" else "analysis",
            missing,
            tuple(group.columns for group in groups),
            _remarks(raw, entity),
        ),
    )
    if not quasi:
        return proposal
    undecided = {name for group in groups for name in group.columns}  # one decision for all of them comes first
    guards = [column.guard for column in columns if column.guard is not None and column.name not in undecided]
    if guards:
        from shoal.inspection.strictness import protection_of  # the searches are not needed elsewhere

        plan = proposal.policy if k is None else proposal.policy.model_copy(update={"require": (KAnonymity(k=k),)})
        proposal = replace(proposal, protection=protection_of(engine, plan, guards))
    if not keep:
        return proposal
    from shoal.inspection.keeping import cost_of_keeping  # the searches are not needed elsewhere

    return replace(proposal, keeping=cost_of_keeping(engine, proposal.policy))


def _guesses(
    raw: Sequence[RawColumn],
    roles: Mapping[str, Role],
    keys: Mapping[str | None, str],
    source: TableInMemory | TableInEngine,
    nested: Sequence[str],
) -> tuple[dict[str, Guess], list[Battery]]:
    """Return the guess for every column, and the groups of columns that are one decision."""
    given_guesses = dict.fromkeys(nested, Guess("identifier", "lists or dicts, which cannot be generalized", "sure"))
    given_guesses |= {name: Guess(role, AS_TOLD, "sure") for name, role in roles.items()}
    unnamed = [column for column in raw if column.name not in given_guesses]
    guessed = roles_of(unnamed, any_quasi="quasi" in roles.values())
    guesses = {column.name: guess for column, guess in zip(unnamed, guessed, strict=True)} | given_guesses
    guesses |= _keys(keys, given_guesses)
    groups = batteries(raw, guesses)
    for group in groups:  # published until somebody decides: generalizing a hundred answers would leave nothing
        guesses |= dict.fromkeys(group.columns, Guess("sensitive", group.reason, "unsure"))
    if all(guess.role in ("sensitive", "plain", "identifier") for guess in guesses.values()):
        spare = max(
            (c for c in unnamed if guesses[c.name].role != "identifier"), key=lambda c: c.distinct, default=None
        )
        if spare is not None:
            guesses[spare.name] = Guess("quasi", NOTHING_ELSE, "unsure")
    persons = next((column.distinct for column in raw if keys.get(column.name) == "persons"), None)
    n_persons = persons or (raw[0].records if raw else 0)
    for _ in range(COMPANIONS_OF_COMPANIONS):
        companions = companion_guesses(raw, guesses, n_persons, source.n_tuples, source.dependences)
        guesses |= companions
        if not companions:
            break
    groups = [Battery(tuple(n for n in group.columns if guesses[n].role == "sensitive")) for group in groups]
    return guesses, [group for group in groups if group.columns]


def policy_for(
    data: Data,
    *,
    k: int,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    plain: Sequence[str] = (),
    l: int | None = None,
    t: float | None = None,
    purpose: Purpose = "analysis",
) -> tuple[Policy, Inspection]:
    """Propose a policy with these roles and requirements; all other columns get the role that is guessed."""
    for letter, number in (("l", l), ("t", t)):
        if number is not None and not sensitive:
            raise PolicyError(f"{letter}: no column is named as sensitive", 'for example sensitive=["disease"]')
    k = _whole("k", k)
    inspection = _inspected(data, quasi, sensitive, plain, (), purpose, k if k > 0 else None)
    proposed = inspection.policy
    requirements: list[dict[str, Any]] = [{"model": "k-anonymity", "k": k}]
    proposed_too = [model.model_dump(mode="json", exclude_none=True) for model in proposed.require]
    own_bounds = l is not None or t is not None
    requirements += [
        fields
        for fields in proposed_too
        if fields["model"] != "k-anonymity" and not (own_bounds and fields.get("column") in {None, *sensitive})
    ]
    for name in sensitive:
        if l is not None:
            requirements.append({"model": "distinct-l-diversity", "column": name, "l": _whole("l", l)})
        if t is not None:
            requirements.append({"model": "t-closeness", "column": name, "t": float(t)})
    fields: dict[str, Any] = {
        "columns": {column.name: column.fields(purpose) for column in inspection.columns},
        "require": requirements,
        "release": proposed.release.model_dump(mode="json", exclude_none=True),
    }
    policy = Policy.of(fields | ({"missing": list(inspection.missing)} if inspection.missing else {}))
    return policy, inspection


def _whole(letter: str, number: int) -> int:
    """Return a whole number of any type, such as one of NumPy."""
    try:
        if not isinstance(number, bool):
            return operator.index(number)
    except TypeError:
        pass
    raise PolicyError(f"{letter}: expected a whole number, not {type(number).__name__}")


def _roles_given(names_by_parameter: Mapping[str, Sequence[str]], raw: Sequence[RawColumn]) -> dict[str, Role]:
    """Return the roles that the caller names, and refuse names that the table does not have."""
    names = [column.name for column in raw]
    for parameter, columns in names_by_parameter.items():
        if isinstance(columns, str):
            raise PolicyError(f"{parameter}: expected a list of columns, not a single text")
        if absent := [name for name in columns if name not in names]:
            raise no_column(f"{parameter}: the table", absent, names)
    roles: dict[str, Role] = {}
    for parameter, role in ROLES_GIVEN.items():
        for name in names_by_parameter[parameter]:
            if roles.setdefault(name, role) != role:
                first = next(word for word, other in ROLES_GIVEN.items() if other == roles[name])
                raise PolicyError(f"column {name!r} is listed as {first} and as {parameter}", "choose one")
    return roles


def _remarks(raw: Sequence[RawColumn], entity: str | None) -> tuple[str, ...]:
    """Return what stands in the way of counting persons: keys of one person that are written in several ways."""
    column = next((column for column in raw if column.name == entity), None)
    if column is None or (n_alike := len(column.texts) - len(set(spelled_alike(column.texts).tolist()))) == 0:
        return ()
    return (
        f"column {entity!r}: {n_alike:,} of its values are other spellings of the same number or word, such as 1 and "
        "01; each counts as a person of its own: write them in one way first",
    )


def _keys(keys: Mapping[str | None, str], given_guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    return {
        name: Guess("identifier", f"identifies {subject}: several records share a value", "likely")
        for name, subject in reversed(list(keys.items()))
        if name is not None and name not in given_guesses
    }


def _column(
    column: RawColumn,
    guessed: Guess,
    keep: Sequence[str],
    spelling: Spelling | None,
    *,
    missing_apart: bool,
    in_memory: bool,
) -> InspectedColumn:
    proposal = None
    if guessed.role == "quasi":
        proposal = propose(column.name, column.texts, column.counts) if column.all_there else HIDDEN_OR_SETS
        if column.labelled and proposal.cells == "range":
            proposal = replace(proposal, cells="set")  # of codes: what lies between two of them means nothing
    return InspectedColumn(
        column.name,
        column.kind,
        column.distinct,
        column.nulls,
        guessed.role,
        guessed.reason,
        guessed.sure,
        proposal,
        KEPT if column.name in keep and guessed.role == "quasi" else 1,
        spelling.missing if spelling is not None and missing_apart else None,
        "." if spelling is None else spelling.decimal,
        None if spelling is None else spelling.thousands,
        column.label,
        tuple(column.categories.items()),
        sensitive_column(column, in_memory=in_memory) if guessed.role == "sensitive" else None,
    )
