"""Verdicts and scores against the definitions, in exact arithmetic and with counts near the limits of int64."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import (
    DISTANCES,
    MOVED,
    Case,
    Column,
    classes,
    compatible,
    entropy,
    ground_distance,
    passes,
    ranked_counts,
    transport,
)
from examples import examples
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.judge.figures import figures
from shoal.models.closeness import TCloseness, distance
from shoal.models.diversity import EntropyDiversity, RecursiveDiversity, distinct
from shoal.models.diversity import entropy as entropies
from shoal.search import Problem
from shoal.search.losses.cells import losses
from shoal.tables.frequency import Domain, FrequencyTable, Histogram
from shoal.tables.wildcard import neighbourhoods
from strategies import KINDS, models_of, requirements, sensitive_columns, table_of

EXAMPLES = examples(100)
EITHER = st.booleans()


@st.composite
def judged_tables(draw, nulls=EITHER):
    """Records in a few classes with two sensitive columns; nothing to generalize."""
    n = draw(st.integers(1, 14))
    column = Column("c", {f"c{i}": (f"c{i}", "all") for i in range(4)})
    rows = draw(st.lists(st.sampled_from(list(column.paths)), min_size=n, max_size=n))
    with_nulls = draw(nulls)
    return Case(
        (column,),
        tuple((value,) for value in rows),
        (),
        {name: draw(sensitive_columns(name, n, with_nulls)) for name in "su"},
        tuple(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))) if draw(st.booleans()) else None,
    )


def in_order(case):
    """The classes as the counted table lists them: by their codes."""
    return [E for _, E in sorted(classes(case, range(case.n), (0,)).items())]


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(st.data())
def test_each_verdict_is_that_of_the_definition(kind, data):
    case = data.draw(judged_tables(st.just(False) if kind == "numeric" else EITHER))
    asked = data.draw(requirements(kind, ("s", "u")))
    (model,) = models_of(Case(case.columns, case.rows, (asked,), case.sensitive))
    expected = [passes(case, asked, E) for E in in_order(case)]
    assert model.passes(table_of(case)).tolist() == expected


@pytest.mark.parametrize("name", DISTANCES)
@EXAMPLES
@given(st.data())
def test_each_distance_is_that_of_the_definition(name, data):
    case = data.draw(judged_tables(st.just(False) if name == "numeric" else EITHER))
    column = case.sensitive["s"]
    q = column.shares(range(case.n))
    expected = [float(DISTANCES[name](column.shares(E), q, column)) for E in in_order(case)]
    assert distance(table_of(case).sensitive["s"], name).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", MOVED)
@examples(40)
@given(st.data())
def test_each_of_lis_distances_is_the_cheapest_transport_of_one_distribution_to_the_other(name, data):
    case = data.draw(judged_tables(st.just(False) if name == "numeric" else EITHER))
    column = case.sensitive["s"]
    m = len(column.present)
    cost = [[ground_distance(name, i, j, column) for j in range(m)] for i in range(m)]
    q = column.shares(range(case.n))
    expected = [float(transport(column.shares(E), q, cost)) for E in in_order(case)]
    assert distance(table_of(case).sensitive["s"], name).tolist() == pytest.approx(expected, abs=1e-12)


@EXAMPLES
@given(judged_tables(), st.integers(1, 3))
def test_every_figure_is_the_worst_over_the_classes(case, l):
    found = figures(table_of(case), l=l)
    by_column = {}
    for name, column in case.sensitive.items():
        q = column.shares(range(case.n))
        worst = Counter()
        least = {"l": math.inf, "entropy_l": math.inf}
        for E in in_order(case):
            p = column.shares(E)
            ranked = ranked_counts(column, E, "recursive-l-diversity")
            tail = sum(ranked[l - 1 :])
            gains = [(a - b) / b for a, b in zip(p, q, strict=True) if a > b]
            capped = [math.inf if g > -math.log(b) + 1e-12 else g for g, b in zip(gains, _gaining(p, q), strict=True)]
            figures_of_class = {
                "recursive_c": ranked[0] / tail if tail else math.inf,
                "t": DISTANCES["equal"](p, q, column),
                "alpha": max(p),
                "beta": max(gains, default=0),
                "enhanced_beta": max(capped, default=0),
                "delta": max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)) if all(p) else math.inf,
            }
            for figure, value in figures_of_class.items():
                worst[figure] = max(worst[figure], float(value))
            least["l"] = min(least["l"], len(ranked))
            least["entropy_l"] = min(
                least["entropy_l"], math.exp(entropy(column.values[i] for i in E if column.values[i] is not None))
            )
        by_column[name] = {**worst, **least}
        shown = {figure: found.columns[name][figure] for figure in by_column[name]}
        assert shown == pytest.approx(by_column[name], abs=1e-9)
    for figure in by_column["s"]:
        of_columns = [by_column[name][figure] for name in by_column]
        assert found[figure] == pytest.approx((min if figure in ("l", "entropy_l") else max)(of_columns), abs=1e-9)
    crowds = [len(E) if case.persons is None else len({case.persons[i] for i in E}) for E in in_order(case)]
    assert found["records"] == case.n
    assert found["classes"] == len(crowds)
    assert found["k"] == min(crowds)
    assert found["uniques"] == crowds.count(1)
    assert found["risk_max"] == pytest.approx(1 / min(crowds))
    expected = sum(Fraction(len(E), crowd) for E, crowd in zip(in_order(case), crowds, strict=True)) / case.n
    assert found["risk_mean"] == pytest.approx(float(expected))


def _gaining(p, q):
    return [b for a, b in zip(p, q, strict=True) if a > b]


# --- null matches anything ------------------------------------------------------------------------------------


@st.composite
def tables_with_nulls(draw):
    n_columns = draw(st.integers(1, 4))
    domains = [[None, *(f"{name}{i}" for i in range(2))] for name in "abcd"[:n_columns]]
    columns = tuple(
        Column(name, {value: (value, "all") for value in reversed(domain)})
        for name, domain in zip("abcd", domains, strict=False)
    )
    n = draw(st.integers(1, 12))
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, domains)), min_size=n, max_size=n))
    return Case(columns, tuple(rows), (), {"s": draw(sensitive_columns("s", n, False))})


@EXAMPLES
@given(tables_with_nulls())
def test_a_neighbourhood_holds_every_record_that_is_compatible(case):
    table = table_of(case)
    nulls = [h.encode([None])[0] for h in table.hierarchies]
    near = neighbourhoods(table, nulls)
    column = case.sensitive["s"]
    texts = near.sensitive["s"].domain.texts
    dense = near.sensitive["s"].dense(0, near.n_classes)
    for i, codes in enumerate(table.codes):
        mine = tuple(h.leaves[c] for h, c in zip(table.hierarchies, codes, strict=True))
        matching = [r for r, row in enumerate(case.rows) if compatible(mine, row)]
        assert near.counts[i] == len(matching)
        values = Counter(column.values[r] for r in matching)
        assert {text: n for text, n in zip(texts, dense[i], strict=True) if n} == values


# --- counts of a billion ----------------------------------------------------------------------------------------

BILLION = 10**9
HUGE = [[4 * BILLION, 1, 0], [BILLION, BILLION - 1, BILLION], [0, 2 * BILLION, 3 * BILLION + 7]]


def huge_table():
    """Three classes of billions of records."""
    counts = np.array(HUGE, np.int64)
    present = counts > 0
    domain = Domain("s", ("1", "2", "9"), counts.sum(axis=0), np.array([1.0, 2.0, 9.0]))
    histogram = Histogram(
        np.concatenate([[0], np.cumsum(present.sum(axis=1))]),
        np.nonzero(present)[1].astype(np.int32),
        counts[present],
        3,
        domain,
    )
    codes = np.arange(3, dtype=np.int32)[:, None]
    hierarchy = Hierarchy.from_paths("c", [("a", "*"), ("b", "*"), ("d", "*")])
    return FrequencyTable(("c",), codes, counts.sum(axis=1), {"s": histogram}, None, (hierarchy,))


def shares_of_huge():
    whole = [sum(column) for column in zip(*HUGE, strict=True)]
    q = [Fraction(n, sum(whole)) for n in whole]
    return [[Fraction(r, sum(row)) for r in row] for row in HUGE], q


@pytest.mark.parametrize("name", ["equal", "ordered", "numeric"])
def test_distances_of_billions_of_records_do_not_overflow(name):
    P, q = shares_of_huge()
    at = {"ordered": [0, 1, 2], "numeric": [1, 2, 9]}.get(name)

    def apart(i, j):
        return Fraction(i != j) if at is None else Fraction(abs(at[i] - at[j]), at[2] - at[0])

    cost = [[apart(i, j) for j in range(3)] for i in range(3)]
    expected = [float(transport(p, q, cost)) for p in P]
    assert distance(huge_table().sensitive["s"], name).tolist() == pytest.approx(expected, rel=1e-12)


def test_entropies_and_verdicts_of_billions_of_records_do_not_overflow():
    table = huge_table()
    P, _ = shares_of_huge()
    expected = [-sum(float(x) * math.log(x) for x in p if x) for p in P]
    assert entropies(table.sensitive["s"]).tolist() == pytest.approx(expected, rel=1e-12)
    assert distinct(table.sensitive["s"]).tolist() == [2, 3, 2]
    assert EntropyDiversity(l=2.9).passes(table).tolist() == [False, True, False]
    # 4·10⁹ against 1; 10⁹ against 2·10⁹ − 1; 3·10⁹ + 7 against 2·10⁹.
    assert RecursiveDiversity(c=1, l=2).passes(table).tolist() == [False, True, False]
    assert RecursiveDiversity(c=1.6, l=2).passes(table).tolist() == [False, True, True]
    assert TCloseness(t=1).passes(table).all()


def test_a_share_just_below_a_bound_of_billions_is_told_from_one_just_above():
    table = huge_table()
    # Class 2 has r_1 = 10⁹ twice and 10⁹ − 1: the third value alone is one record short of the first.
    assert not RecursiveDiversity(c=1, l=3).passes(table)[1]
    assert RecursiveDiversity(c=1.00000001, l=3).passes(table)[1]


def test_losses_of_billions_of_records_do_not_overflow():
    problem = Problem(huge_table(), (EntropyDiversity(l=1),))
    ground, top = (problem.recoding(problem.evaluate(node), "by hand", proved=False) for node in ((0,), (1,)))
    sizes = [sum(row) for row in HUGE]
    found = losses(problem, ground)
    assert found["discernibility"] == pytest.approx(float(sum(n * n for n in sizes)), rel=1e-12)
    assert found["average-class"] == pytest.approx(sum(sizes) / 3)
    top = losses(problem, top)
    assert top["discernibility"] == pytest.approx(float(sum(sizes) ** 2), rel=1e-12)
    assert top["loss"] == top["precision"] == 1
    ratio = sum(n * (math.log(sum(sizes)) - math.log(n)) for n in sizes)
    assert top["entropy"] == pytest.approx(ratio, rel=1e-12)
