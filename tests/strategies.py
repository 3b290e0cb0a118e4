"""Random small problems, and the way from the plain case of ``definitions`` to shoal's own objects."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pydantic import TypeAdapter

from definitions import DISTANCES, Answer, Asked, Case, Column, Label, Sensitive
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models import PrivacyModel, Requirement
from shoal.notation import codec
from shoal.recoding import FullDomain
from shoal.search import Problem
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Evaluation, Terms
from shoal.tables.domain import domain_of
from shoal.tables.frequency import FrequencyTable, count_records

REQUIREMENT: TypeAdapter[PrivacyModel] = TypeAdapter(Requirement)
OBJECTIVES = ("loss", "arx-loss", "discernibility", "average-class", "height", "precision", "entropy", "ambiguity")

# Which leaves share a label on each level. Among them: one leaf, a level that changes nothing, a ground level that
# already joins leaves (top-coding), and more leaves than a small table will use.
SHAPES = (
    ("01", "00"),
    ("012", "001", "000"),
    ("012", "000"),
    ("0123", "0011", "0000"),
    ("01", "01", "00"),
    ("0112", "0111", "0000"),
    ("01234", "00112", "00001", "00000"),
    ("0", "0"),
    ("0",),
)
NOT_IN_THE_HIERARCHY = "?"


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    """A quasi column, sometimes with nulls, with values that its hierarchy does not know, or priced as a range."""
    shape = draw(st.sampled_from(SHAPES))
    height = len(shape) - 1
    paths: dict[Label, tuple[Label, ...]] = {
        f"{name}{leaf}": tuple("all" if level == height else f"{name}{level}{c}" for level, c in enumerate(codes))
        for leaf, codes in enumerate(zip(*shape, strict=True))
    }
    ranges, made = None, list(paths.values())
    if len(shape[0]) > 1 and draw(st.booleans()):
        # Any costs that grow from level to level will do; every other label costs half a step more.
        ranges = tuple(
            {path[level]: Fraction(2 * level + int(c) % 2, 2 * height + 2) for path, c in zip(made, of, strict=True)}
            for level, of in enumerate(shape)
        )
    uncovered = draw(st.integers(0, 9)) == 0
    if draw(st.integers(0, 3)) == 0:
        if height == 0:
            paths = {leaf: (*path, "*") for leaf, path in paths.items()}
            height = 1
        paths[None] = (None,) * height + (next(iter(paths.values()))[-1],)
        if ranges is not None:
            ranges = tuple({**of_level, None: Fraction(0)} for of_level in ranges)
    return Column(name, paths, ranges, uncovered)


# Every requirement of a policy by a short name, with parameters that small tables sometimes meet.
_PARAMETERS: dict[str, tuple[str, dict[str, tuple[Any, ...]]]] = {
    "k": ("k-anonymity", {"k": (1, 2, 3, 4)}),
    "k over columns": ("k-anonymity", {"k": (1, 2, 3, 4)}),
    "p": ("p-sensitive", {"p": (1, 2, 3), "k": (3, 4)}),
    "distinct": ("distinct-l-diversity", {"l": (1, 2, 3)}),
    "entropy": ("entropy-l-diversity", {"l": (1, 1.2, 1.5, 2, 2.5, 3)}),
    "recursive": ("recursive-l-diversity", {"c": (0.5, 0.6, 1, 1.5, 2, 3), "l": (1, 2, 3)}),
    **{
        distance: ("t-closeness", {"t": (0, 0.1, 0.2, 0.25, 0.3, 0.375, 0.5, 0.7, 1), "distance": (distance,)})
        for distance in DISTANCES
    },
    "alpha": ("alpha-k-anonymity", {"alpha": (0.3, 0.5, 0.6, 0.75, 1), "k": (1, 2, 3)}),
    "beta": ("basic-beta-likeness", {"beta": (0.1, 0.5, 1, 2)}),
    "enhanced": ("enhanced-beta-likeness", {"beta": (0.1, 0.5, 1, 2)}),
    "delta": ("delta-disclosure", {"delta": (0.2, 0.5, 1, 1.5)}),
    "delta, absent": ("delta-disclosure", {"delta": (0.2, 0.5, 1, 1.5), "absent": ("ignore",)}),
}
KINDS = tuple(_PARAMETERS)


@st.composite
def requirements(draw: st.DrawFn, kind: str, sensitive: Sequence[str], quasi: Sequence[str] = ("c",)) -> Asked:
    """One requirement, on one sensitive column or on all."""
    model, parameters = _PARAMETERS[kind]
    asked = {"model": model, **{name: draw(st.sampled_from(values)) for name, values in parameters.items()}}
    if kind == "k over columns":
        asked["columns"] = draw(st.lists(st.sampled_from(quasi), min_size=1, unique=True))
    if model != "k-anonymity" and draw(st.booleans()):
        asked["column"] = draw(st.sampled_from(sensitive))
    return asked


# Numbers with unequal gaps, listed in an order that is neither that of numbers nor that of texts.
SENSITIVE_PATHS: dict[Label, tuple[Label, ...]] = {
    "30": ("30", "many", "any"),
    "4": ("4", "few", "any"),
    "2": ("2", "few", "any"),
    "11": ("11", "many", "any"),
}


@st.composite
def sensitive_columns(draw: st.DrawFn, name: str, n: int, nulls: bool) -> Sensitive:
    """A sensitive column with its tree, in whose order its values come."""
    paths = dict(SENSITIVE_PATHS)
    order: list[Label] = list(SENSITIVE_PATHS)[: draw(st.integers(1, 4))]
    if nulls:
        paths[None] = (None, None, "any")
        order.append(None)
    values = draw(st.lists(st.sampled_from(order), min_size=n, max_size=n))
    return Sensitive(name, tuple(values), tuple(order), paths)


@st.composite
def cases(
    draw: st.DrawFn, kinds: Sequence[str] | None = None, *, max_rows: int = 9, persons: bool | None = None
) -> Case:
    """Anything that a policy could ask: the requirements of the given kinds, or a combination of any."""
    if kinds is None:
        kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    sensitive = ("s", "u")[: draw(st.integers(min(1, len({*kinds} - {"k", "k over columns"})), 2))]
    names = "abc"[: draw(st.integers(1, 3))]
    asked = tuple(draw(requirements(kind, sensitive, names)) for kind in kinds)
    wildcard = not persons and draw(st.integers(0, 3)) == 0
    quasi = tuple(draw(columns(name)) for name in names)
    n = draw(st.integers(1, max_rows))
    leaves = [[*c.paths, *([NOT_IN_THE_HIERARCHY] if c.uncovered else [])] for c in quasi]
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, leaves)), min_size=n, max_size=n))
    nulls = "numeric" not in kinds and draw(st.integers(0, 3)) == 0
    if persons is None:
        persons = not wildcard and draw(st.integers(0, 4)) == 0
    return Case(
        quasi,
        tuple(rows),
        asked,
        {name: draw(sensitive_columns(name, n, nulls)) for name in sensitive},
        tuple(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))) if persons else None,
        draw(st.one_of(st.just(0), st.integers(0, n), st.just(n))),
        keep=not wildcard and draw(st.booleans()),
        wildcard=wildcard,
    )


# --- from the plain case to shoal's objects ----------------------------------------------------------------------


def hierarchy_of(column: Column) -> Hierarchy:
    """The same hierarchy as a lookup table."""
    leaves = [leaf for leaf in column.paths if leaf is not None]
    # A column of one level grows a top when null joins it.
    paths = [column.paths[leaf] for leaf in leaves]
    if None in column.paths and column.height == 1 and paths[0][-1] == "*":
        paths = [path[:1] for path in paths]
    levels = list(zip(*paths, strict=True))
    shares = None
    if column.ranges is not None:
        shares = [
            [float(column.ranges[level][label]) for label in dict.fromkeys(of_leaf)]
            for level, of_leaf in enumerate(levels[:-1])
        ] + [[float(len(leaves) > 1)]]
    hierarchy = Hierarchy.from_levels(column.name, leaves, levels, shares=shares)
    if None in column.paths:
        hierarchy = hierarchy.with_null()
    return hierarchy.with_uncovered() if column.uncovered else hierarchy


def table_of(case: Case, *, apart: bool = False) -> FrequencyTable:
    """The case's records, counted; ``apart`` as for searches that may part equal records."""
    hierarchies = tuple(hierarchy_of(column) for column in case.columns)
    codes = [h.encode([row[j] for row in case.rows]) for j, h in enumerate(hierarchies)]
    domains = {}
    for name, column in case.sensitive.items():
        known = [path for value, path in (column.paths or {}).items() if value is not None]
        tree = Hierarchy.from_paths(name, known)
        coded = codec.encode_texts(name, pa.chunked_array([pa.array(column.values, pa.string())]))
        domain, values = domain_of(name, coded, tree.with_null() if None in column.values else tree)
        domains[domain] = values
    table, _ = count_records(
        tuple(column.name for column in case.columns),
        np.column_stack(codes).astype(np.int32),
        domains,
        None if case.persons is None else np.array(case.persons, np.int32),
        hierarchies,
        separately=apart,
    )
    return table


def models_of(case: Case) -> tuple[PrivacyModel, ...]:
    """The requirements, as a policy would read them."""
    return tuple(REQUIREMENT.validate_python(dict(asked)) for asked in case.asked)


def problem_of(case: Case, objective: str = "loss", *, apart: bool = False) -> Problem:
    """The case as a search gets it."""
    return Problem(
        table_of(case, apart=apart),
        models_of(case),
        Terms(limit=case.limit, objective=objective, wildcard=case.wildcard, keep_suppressed=case.keep),
    )


def labelled(problem: Problem, node: Sequence[int], codes: Any) -> frozenset[tuple[Label, ...]]:
    """Codes at a node as the labels that are released."""
    levels = list(zip(problem.table.hierarchies, node, strict=True))
    return frozenset(tuple(h.label(level, int(c)) for (h, level), c in zip(levels, row, strict=True)) for row in codes)


def suppressed_at(problem: Problem, seen: Evaluation) -> frozenset[tuple[Label, ...]]:
    """The released tuples that a look at a node suppresses."""
    return labelled(problem, seen.node, seen.table.codes[seen.failing])


def answer_of(problem: Problem, recoding: FullDomain) -> Answer:
    """A search's answer in plain values."""
    loss = loss_of(problem, recoding.released, recoding.parts(problem.table), problem.objective_name)
    return Answer(recoding.node, labelled(problem, recoding.node, recoding.suppressed), loss)
