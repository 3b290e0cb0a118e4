"""Expected counts and divergences against sums over every way to read a small release."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.utility.queries import _counts
from shoal.utility.reading import Pair
from shoal.utility.statistics import divergence, kept_statistics

LEAVES = ["1", "2", "3", "4"]
MEANING = {
    **{leaf: [leaf] for leaf in LEAVES},
    "1-2": ["1", "2"],
    "3-4": ["3", "4"],
    "2-4": ["2", "3", "4"],
    "{1, 4}": ["1", "4"],
    "*": LEAVES,
    "2.9": ["3"],
}


def policy(columns):
    return shoal.Policy.of({
        "columns": {name: {"role": "quasi", "hierarchy": {"intervals": [2]}} for name in columns},
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_counts_and_divergence_against_every_reading(seed):
    draw = np.random.default_rng(seed)
    names = "abc"[: int(draw.integers(1, 4))]
    n, r = int(draw.integers(4, 12)), int(draw.integers(1, 9))
    before = {name: LEAVES + draw.choice(LEAVES, n - 4).tolist() for name in names}
    after = {name: draw.choice(list(MEANING), r).tolist() for name in names}
    pair = Pair.from_tables(pa.table(before), pa.table(after), policy(names))
    regions = [draw.integers(0, 2, (5, 4)).astype(bool) for _ in names]
    rows = list(zip(*after.values(), strict=True))
    told = dict.fromkeys(itertools.product(LEAVES, repeat=len(names)), 0.0)
    for row in rows:
        worlds = list(itertools.product(*(MEANING[text] for text in row)))
        for world in worlds:
            told[world] += 1 / len(worlds)
    own = list(zip(*before.values(), strict=True))
    for q in range(5):
        inside = [
            world
            for world in told
            if all(region[q][LEAVES.index(leaf)] for region, leaf in zip(regions, world, strict=True))
        ]
        assert _counts(pair, pair.columns, regions, released=True)[q] == pytest.approx(sum(told[w] for w in inside))
        assert _counts(pair, pair.columns, regions, released=False)[q] == sum(record in inside for record in own)
    dropped = max(0, n - r)
    shares = {world: (mass + dropped / len(told)) / (r + dropped) for world, mass in told.items()}
    expected = 0.0
    for world in set(own):
        p = own.count(world) / n
        expected += p * math.log(p / shares[world]) if shares[world] else math.inf
    assert divergence(pair) == pytest.approx(max(0.0, expected), abs=1e-12)
    for table in kept_statistics(pair)["tables"]["pairs"]:
        at = [list(names).index(name) for name in table["columns"]]
        apart = 0.0
        for cell in itertools.product(LEAVES, repeat=2):
            mine = sum(tuple(record[j] for j in at) == cell for record in own) / n
            theirs = sum(mass for world, mass in told.items() if tuple(world[j] for j in at) == cell) / r
            apart += abs(mine - theirs) / 2
        assert table["distance"] == pytest.approx(apart)
