"""The companies of Tarragona: MDAV as a package of statistical offices does it, and variants that keep more."""

import numpy as np
import pytest

from shoal.masking import microaggregate

FIGURES = {3: 16.93, 5: 22.46, 10: 33.19}


@pytest.fixture(scope="module")
def tarragona(shared):
    return shared / "data" / "sdc" / "in_num_tarragona.csv"


@pytest.fixture(scope="module")
def columns(tarragona):
    with tarragona.open(encoding="utf-8") as lines:
        return next(lines).strip().split(",")


@pytest.mark.parametrize("k", FIGURES)
def test_mdav_masks_every_record_as_sdcmicro_does(shared, tarragona, columns, k):
    masked = microaggregate(tarragona, columns, k=k)
    assert round(100 * masked.loss, 2) == FIGURES[k]
    assert masked.smallest == k
    oracle = np.loadtxt(shared / "oracle" / "sdc" / f"mdav_tarragona_k{k}.csv", delimiter=",", skiprows=1)
    ours = np.column_stack([masked.table[name].to_numpy() for name in columns])
    # Which of two equal records goes to which group is free: pairs of original and masked are compared, as a set.
    original = np.loadtxt(tarragona, delimiter=",", skiprows=1)
    assert _ordered(original, ours) == pytest.approx(_ordered(original, oracle), rel=1e-9, abs=1e-6)


def _ordered(original, masked):
    pairs = np.hstack([original, masked])
    return pairs[np.lexsort(np.round(pairs.T, 3))]


@pytest.mark.parametrize(("k", "loss"), [(3, 15.2), (5, 21.0), (10, 31.0)])
def test_moves_and_swaps_keep_more(tarragona, columns, k, loss):
    masked = microaggregate(tarragona, columns, k=k, improve=True)
    assert 100 * masked.loss < loss < FIGURES[k]
    assert masked.smallest >= k


@pytest.mark.parametrize(("k", "loss"), [(3, 16.97), (5, 22.88), (10, 33.26)])
def test_groups_of_variable_size_lose_what_was_measured(tarragona, columns, k, loss):
    masked = microaggregate(tarragona, columns, k=k, method="v-mdav", gamma=0.2)
    assert 100 * masked.loss == pytest.approx(loss, abs=0.02)


@pytest.mark.parametrize(("k", "loss"), [(3, 2.21), (5, 4.26), (10, 10.61)])
def test_each_column_for_itself_keeps_almost_all_of_its_variance(tarragona, columns, k, loss):
    masked = microaggregate(tarragona, columns, k=k, method="univariate")
    assert round(100 * masked.loss, 2) == loss
