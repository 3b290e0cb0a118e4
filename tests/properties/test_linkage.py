"""Laws of record linkage."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.linkage import distance_linkage, pattern_counts, probabilistic_linkage

CELLS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ä", "*", "a*", "{a, b}", "1-2", "None", "nan"]))


def tables(n_columns):
    rows = st.lists(st.tuples(*[CELLS] * n_columns), min_size=1, max_size=7)
    return rows.map(
        lambda cells: pa.table({f"c{j}": pa.array([row[j] for row in cells], pa.string()) for j in range(n_columns)})
    )


@examples(60)
@given(tables(2), tables(2))
def test_patterns_add_up_to_all_pairs_and_marginals(known, release):
    counts = pattern_counts(known, release)
    assert counts.counts.min() >= 0
    assert counts.counts.sum() == known.num_rows * release.num_rows
    alone = pattern_counts(known, release, on=["c1"])
    assert alone.counts[1] == counts.counts[2] + counts.counts[3]


@examples(60)
@given(tables(2))
def test_a_record_is_at_distance_0_from_itself(table):
    found = distance_linkage(table, table, truth="position")
    assert (found.distance == 0).all()
    assert found.correct == sum(1 / found.ties)
    assert found.of == table.num_rows


@examples(40)
@given(tables(2), tables(2), st.randoms(use_true_random=False))
def test_the_order_of_the_release_does_not_matter(known, release, random):
    order = list(range(release.num_rows))
    random.shuffle(order)
    shuffled = release.take(order)
    one, other = (distance_linkage(known, table) for table in (release, shuffled))
    assert one.distance.tolist() == other.distance.tolist()
    assert one.ties.tolist() == other.ties.tolist()
    assert pattern_counts(known, release).counts.tolist() == pattern_counts(known, shuffled).counts.tolist()


@examples(25)
@given(tables(3), tables(3))
def test_weights_grow_with_agreement_and_thresholds_do_not_cross(known, release):
    found = probabilistic_linkage(known, release, max_iterations=30)
    model = found.model
    assert (model.m >= model.u).all()
    assert (model.agreement >= 0).all()
    assert (model.disagreement <= 0).all()
    assert found.lower < found.upper
    agrees = found.patterns.agrees
    for j in range(3):
        without = np.flatnonzero(~agrees[:, j])
        assert (found.weights[without + (1 << j)] >= found.weights[without]).all()
