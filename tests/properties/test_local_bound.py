"""A law of the bound of ``local``, whatever the table and the requirements."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.errors import InfeasibleError
from shoal.search import SEARCHES
from shoal.search.cells.classes import Partition
from shoal.search.local.bound import least_loss
from shoal.search.local.boxes import Space
from shoal.search.losses.cells import loss_of
from strategies import KINDS, cases, problem_of

CLASS_BY_CLASS = tuple(kind for kind in KINDS if kind != "k over columns")


@examples(800)
@given(st.lists(st.sampled_from(CLASS_BY_CLASS), min_size=1, max_size=3).flatmap(lambda kinds: cases(kinds)))
def test_no_node_of_the_lattice_loses_less_than_the_bound(case):
    if case.wildcard:
        return
    try:
        problem = problem_of(case, "loss")
        best = SEARCHES["optimal"](problem)
    except InfeasibleError:
        return
    apart = problem_of(case, "loss", apart=True)
    for of in (problem, apart):  # rows with several values, and with one each
        space = Space(of)
        whole = Partition.of_rows(of.table, np.zeros(of.table.n_classes, np.int64))
        bound, _ = least_loss(of, space, whole)
        assert bound is not None
        assert bound <= loss_of(problem, best.released, best.parts(problem.table), "loss") + 1e-9
