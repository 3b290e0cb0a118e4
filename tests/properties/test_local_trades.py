"""Laws of the trades of ``local``, whatever the table, the requirements and the chance."""

import importlib
from collections import defaultdict

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from definitions import Case, Column, Sensitive, passes
from examples import examples
from shoal.search.cells.classes import Partition, passing
from shoal.search.local.boxes import Space
from shoal.search.local.trades import trade
from strategies import SENSITIVE_PATHS, models_of, problem_of, table_of

local = importlib.import_module("shoal.search.local.local")  # the package has a function of this name
VALUES = list(SENSITIVE_PATHS)
REQUIREMENTS = [
    {"model": "distinct-l-diversity", "l": 2},
    {"model": "entropy-l-diversity", "l": 1.5},
    {"model": "t-closeness", "t": 0.3},
    {"model": "t-closeness", "t": 0.15, "distance": "ordered"},
    {"model": "alpha-k-anonymity", "alpha": 0.6, "k": 2},
    {"model": "p-sensitive", "p": 2, "k": 3},
    {"model": "basic-beta-likeness", "beta": 0.7},
    {"model": "enhanced-beta-likeness", "beta": 1.5},
]


@st.composite
def asked(draw: st.DrawFn) -> Case:
    """Records in a tree of six leaves and a column of two, some sensitive values, and one or two requirements."""
    tree = Column("a", {f"{i}": (f"{i}", f"pair {i // 2}", "all") for i in range(6)})
    told = Column("b", {"x": ("x", "any"), "y": ("y", "any")})
    records = st.tuples(st.sampled_from(list(tree.paths)), st.sampled_from(["x", "y"]), st.sampled_from(VALUES))
    drawn = draw(st.lists(records, min_size=6, max_size=40))
    required = draw(st.lists(st.sampled_from(REQUIREMENTS), min_size=1, max_size=2, unique_by=str))
    sensitive = {"s": Sensitive("s", tuple(value for *_, value in drawn), tuple(VALUES), SENSITIVE_PATHS)}
    rows = tuple((a, b) for a, b, _ in drawn)
    return Case((tree, told), rows, ({"model": "k-anonymity", "k": 2}, *required), sensitive, None, 0)


def by_definition(case: Case, table, partition: Partition) -> bool:
    """Deal the records out as the partition says, and judge each class."""
    waiting = defaultdict(list)
    for i, row in enumerate(case.rows):
        codes = tuple(int(h.encode([value])[0]) for h, value in zip(table.hierarchies, row, strict=True))
        waiting[codes, case.sensitive["s"].values[i]].append(i)
    histogram = table.sensitive["s"]
    classes = defaultdict(list)
    for row, n, c in zip(partition.row, partition.counts, partition.class_of, strict=True):
        value = histogram.domain.texts[histogram.values[histogram.starts[row]]]
        classes[int(c)] += [waiting[tuple(table.codes[row].tolist()), value].pop() for _ in range(n)]
    assert not any(waiting.values())
    return all(passes(case, model, records) for model in case.asked for records in classes.values())


@examples(60)
@given(asked(), st.integers(0, 1_000), st.sampled_from([0.0, 0.0, 0.2]))
def test_every_class_keeps_passing_by_its_definition_and_nothing_is_lost_without_heat(case, seed, temperature):
    problem = problem_of(case, apart=True)
    assert problem.table.n_records == len(case.rows) == table_of(case, apart=True).n_records
    whole = Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64))
    assume(passing(problem, whole.classes(problem.table)).all())
    search = local._LocalSearch(problem, Space(problem), whole)
    search._split(1)
    assert search.limits is not None, models_of(case)
    before = search.total * problem.n_records
    trade(search.boxes, search.atoms, search.classes, search.limits, 0, 400, seed, temperature)
    found = search.partition
    assert found.n_suppressed == 0
    assert int(found.counts.sum()) == len(case.rows)
    assert by_definition(case, problem.table, found)
    used = search.classes.n_atoms > 0
    after = float(search.classes.n_records[used] @ search.classes.cost[used])
    assert after <= before + 1e-6 or temperature
