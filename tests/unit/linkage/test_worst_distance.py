"""The distance that finds most people, learned."""

import json

import numpy as np
import pandas as pd
import pytest

from shoal.errors import DataError
from shoal.linkage import distance_linkage, worst_case, worst_distance
from shoal.linkage.families import FAMILIES, family

NOISE = np.array([0.1, 0.1, 0.1, 3, 3, 3])


def masked(n, noise=NOISE, seed=0):
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(n, len(noise)))
    return known, known + rng.normal(size=known.shape) * noise


def test_learned_weights_find_several_times_what_euclid_does_under_unequal_noise():
    known, release = masked(300, seed=1)
    found = worst_case(known, release)
    assert found.risk > 4 * found.plain_risk
    assert found.correct > 0.85 * found.of
    weights = found.parameters
    assert min(weights[name] for name in "012") > max(weights[name] for name in "345")
    assert (found.proved, found.bound) == (False, 300)


def test_the_plain_distance_is_that_of_distance_linkage():
    known, release = masked(80, seed=2)
    found = worst_case(known, release, exact=False)
    assert found.plain == distance_linkage(known, release, truth="position").singled_out


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_finds_at_least_what_the_plain_distance_does(name):
    known, release = masked(25, np.array([0.3, 0.5, 2.0]), seed=3)
    found = worst_case(known, release, family=name, time_limit=5)
    assert found.plain <= found.correct <= found.bound <= found.of
    assert worst_case(known, release, family=name, time_limit=5, exact=False).correct <= found.bound
    json.dumps(found.as_dict())


@pytest.mark.parametrize("name", ["bilinear", "choquet"])
def test_richer_families_find_at_least_what_weights_do(name):
    known, release = masked(60, np.array([0.3, 0.5, 2.0, 1.0]), seed=4)
    simple = worst_case(known, release, exact=False)
    assert worst_case(known, release, family=name, exact=False).correct >= simple.correct


def test_the_parameters_are_those_of_a_distance():
    known, release = masked(30, np.array([0.3, 0.5, 2.0]), seed=5)
    for name in ("mean", "owa"):
        weights = np.array(list(worst_case(known, release, family=name, exact=False).parameters.values()))
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
    columns = ("0", "1", "2")
    form = family("bilinear", columns)
    theta = np.array(list(worst_case(known, release, family="bilinear", exact=False).parameters.values()))
    assert np.linalg.eigvalsh(form.matrix_of(theta)).min() > -1e-9
    assert form.unit @ theta == pytest.approx(1)
    capacity = family("choquet", columns)
    theta = np.array(list(worst_case(known, release, family="choquet", exact=False).parameters.values()))
    assert (capacity.rows @ theta > -1e-7).all()


def test_an_indefinite_matrix_is_cut_off_and_mended():
    form = family("bilinear", ("a", "b"))
    theta = np.array([0.5, 0.9, 0.5])
    cut = form.cut(theta)
    assert cut @ theta < 0
    mended = form.inside(theta)
    assert cut @ mended >= -1e-12
    assert form.cut(mended) is None


def test_the_seed_decides():
    known, release = masked(40, seed=6)
    one, other = (worst_case(known, release, exact=False, seed=3) for _ in range(2))
    assert one.as_dict() == other.as_dict()


def test_records_that_look_the_same_share_the_credit():
    known = pd.DataFrame({"age": [20, 21, 40, 41]})
    release = pd.DataFrame({"age": ["20-29", "20-29", "40-49", "40-49"]})
    found = worst_case(known, release)
    assert (found.plain, found.correct, found.proved) == (2.0, 2.0, True)


def test_people_outside_the_release_are_left_out():
    known, release = masked(10, np.array([0.01, 0.01]), seed=7)
    found = worst_case(known, release[:6], truth=[0, 1, 2, 3, 4, 5, -1, -1, -1, -1])
    assert found.of == 6
    alone = worst_case(known, release[:1], truth=[0] + [-1] * 9)
    assert (alone.correct, alone.proved) == (1.0, True)
    nobody = worst_case(known, release, truth=[-1] * 10)
    assert (nobody.of, nobody.correct, nobody.risk) == (0, 0.0, 0.0)


def test_mistakes_are_named(monkeypatch):
    known, release = masked(5)
    with pytest.raises(DataError, match="family"):
        worst_case(known, release, family="median")
    with pytest.raises(DataError, match="time_limit"):
        worst_case(known, release, time_limit=0)
    with pytest.raises(DataError, match="positions"):
        worst_case(known, release[:2])
    monkeypatch.setattr(worst_distance, "LARGEST", 10)
    with pytest.raises(DataError, match="5 people, 5 distinct"):
        worst_case(known, release)
