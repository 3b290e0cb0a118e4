"""The size of an intersection: its field, its buckets, and a count by sets as the oracle."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joint_runs import JointRuns
from shoal.errors import InfeasibleError
from shoal.results.smc.intersection import ORDER, _filled, bucket_sizes, counted, one_unless_zero, with_roots

pytestmark = pytest.mark.xdist_group("parties")


def test_the_order_is_the_tenth_prime_of_mersenne() -> None:
    """The test of Lucas and Lehmer."""
    s = 4
    for _ in range(89 - 2):
        s = (s * s - 2) % ORDER
    assert (ORDER, s) == (2**89 - 1, 0)


class Counting(int):
    """A number of the field that counts products."""

    products = 0

    def __mul__(self, other: Any) -> Counting:
        Counting.products += 1
        return Counting(int(self) * int(other) % ORDER)


@given(st.integers(0, ORDER - 1))
def test_the_power_is_one_unless_zero(x: int) -> None:
    Counting.products = 0
    assert one_unless_zero(Counting(x)) == int(x != 0) == pow(x, ORDER - 1, ORDER)
    assert Counting.products == 96


@given(st.lists(st.integers(0, 96), min_size=1, max_size=6), st.integers(0, 96))
def test_a_polynomial_is_zero_at_its_roots_only(roots: list[int], x: int) -> None:
    value = sum(c * x**e for e, c in enumerate(with_roots(roots, 97))) % 97
    assert (value == 0) == (x in roots)


def test_buckets_hold_what_may_come() -> None:
    assert bucket_sizes(6, 3) == (1, 6)
    buckets, load = bucket_sizes(1000, 3)
    assert (buckets, Fraction(1000, buckets) < load < 100) == (31, True)


@pytest.mark.parametrize("n", [0, 1, 100])
def test_buckets_do_not_tell_how_many_there_are(n: int) -> None:
    digests = [Random(i).getrandbits(128) for i in range(n)]
    filled = _filled(digests, 100, 3)
    assert [len(bucket) for bucket in filled] == [bucket_sizes(100, 3)[1]] * bucket_sizes(100, 3)[0]
    with pytest.raises(InfeasibleError, match="do not fit"):
        _filled([0] * 101, 100, 3)


def test_noise_can_make_a_count_negative() -> None:
    assert [counted(x % ORDER) for x in (-3, 0, 7)] == [-3, 0, 7]


def test_three_parties_count_what_sets_count(joint: JointRuns, tmp_path: Path) -> None:
    """Identifiers that only two of them have are no part of it, and nobody else's padding is."""
    drawn = Random(7)
    everybody = [f"{i:04}" for i in range(120)]
    sets = [drawn.sample(everybody, n) for n in (40, 37, 30)]
    rows = [[{"id": name} for name in [*names, *names[:5]]] for names in sets]
    asked = {"intersection": "id", "at_most": 40, "at_least": 2}
    assert len(set.intersection(*map(set, sets))) >= 2
    for told in joint.told(tmp_path, rows, [asked] * 3):
        assert told["result"] == {"intersection of id": len(set.intersection(*map(set, sets)))}


@pytest.mark.parametrize("n", [0, 1, 9, 10])
def test_a_size_of_one_to_nine_is_not_opened(n: int, joint: JointRuns, tmp_path: Path) -> None:
    shared = [f"both {i}" for i in range(n)]
    rows = [[{"id": name} for name in [*shared, *(f"{party} {i}" for i in range(12))]] for party in range(3)]
    for told in joint.told(tmp_path, rows, [{"intersection": "id", "at_most": 40}] * 3):
        assert told["result"] == {"intersection of id": None if 1 <= n < 10 else n}
        assert any("fewer than 10 identifiers" in note for note in told["notes"]) == (1 <= n < 10)
