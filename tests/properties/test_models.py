"""How verdicts behave when classes merge or lose records: what pruning may rely on."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import Case, Column
from examples import examples
from shoal.models.base import SensitiveModel
from shoal.search.full_domain.lattice import below
from shoal.table.frequency import Histogram
from strategies import KINDS, cases, models_of, problem_of, requirements, sensitive_columns, table_of

EXAMPLES = examples(100)


@st.composite
def judged_tables(draw, kind, leaves=("a", "b", "rest")):
    """A requirement, and a table of three classes: two that may merge, and the rest of the whole."""
    n = draw(st.integers(2, 16))
    column = Column("c", {"a": ("a", "all"), "b": ("b", "all"), "rest": ("rest", "all")})
    rows = draw(st.lists(st.sampled_from([(leaf,) for leaf in leaves]), min_size=n, max_size=n))
    sensitive = {name: draw(sensitive_columns(name, n, kind != "numeric" and draw(st.booleans()))) for name in "su"}
    asked = draw(requirements(kind, ("s", "u")))
    persons = tuple(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))) if draw(st.booleans()) else None
    return Case((column,), tuple(rows), (asked,), sensitive, persons)


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(st.data())
def test_a_union_of_classes_passes_where_the_models_merging_says_so(kind, data):
    case = data.draw(judged_tables(kind))
    table = table_of(case)
    (model,) = models_of(case)
    for a, b in itertools.permutations(range(table.n_classes), 2):
        class_of = np.arange(table.n_classes)
        class_of[b] = a
        _, class_of = np.unique(class_of, return_inverse=True)
        merged = table.merged(class_of.astype(np.int64), table.n_classes - 1, table.codes[:-1])
        first, second = model.passes(table)[[a, b]]
        union = bool(model.passes(merged)[class_of[a]])
        if model.merging == "absorbing":
            assert union or not (first or second)
        elif model.merging == "convex" and model.unions_pass:
            assert union or not (first and second)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("k", "k over columns", "p", "distinct")])
@EXAMPLES
@given(st.data())
def test_no_part_of_a_class_that_passes_is_larger_than_the_model_says(kind, data):
    case = data.draw(judged_tables(kind, ("a", "a", "a", "rest")))  # one large class
    table = table_of(case)
    (model,) = models_of(case)
    assert isinstance(model, SensitiveModel)
    for histogram in model.histograms(table):
        most = model.most(histogram, np.arange(histogram.n_classes))
        for i in range(histogram.n_classes):
            counts = histogram.dense(i, i + 1)[0].astype(int)
            parts = np.array(list(itertools.product(*(range(n + 1) for n in counts)))[1:], np.int64)
            accepted = model.accepts(_histogram(parts, histogram))
            largest = parts.sum(axis=1)[accepted].max(initial=0)
            assert largest <= most[i] + 1e-6


def _histogram(dense, like):
    """Rows of counts as a histogram over the same whole."""
    present = dense > 0
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return Histogram(starts, np.nonzero(present)[1].astype(np.int32), dense[present], like.n_values, like.domain)


@examples(200)
@given(cases())
def test_a_node_that_is_ruled_out_has_no_feasible_node_below(case):
    problem = problem_of(case)
    looks = {node: problem.evaluate(node) for node in problem.lattice}
    for upper, lower in itertools.product(looks, looks):
        if below(lower, upper):
            assert looks[upper].n_lost <= looks[lower].n_suppressed
            assert not (problem.rules_out_below(looks[upper]) and looks[lower].feasible)


@examples(200)
@given(cases())
def test_a_monotone_model_survives_generalization(case):
    problem = problem_of(case)
    if not problem.monotone or problem.keep_suppressed:
        return
    looks = {node: problem.evaluate(node) for node in problem.lattice}
    for lower, upper in itertools.product(looks, looks):
        if below(lower, upper):
            assert not looks[lower].feasible or looks[upper].feasible
