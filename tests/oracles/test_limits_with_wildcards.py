"""Limits on the whole release where a null matches anything: search and verification mean the same, by brute force."""

import itertools
import random

import pyarrow as pa
import pytest

import shoal
from shoal.errors import InfeasibleError

# Two columns of three levels: the value, its first letter, anything.
LEVELS = 3


def at(value: str | None, level: int) -> str | None:
    """A value on a level of its hierarchy; a null stays one until everything is the top."""
    if level == LEVELS - 1:
        return "*"
    return None if value is None else value[: 2 - level] + "*" * level


def fit(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def crowds(rows: list[tuple[str | None, ...]], node: tuple[int, ...]) -> list[int]:
    """Per record, how many it could be taken for."""
    seen = [tuple(at(v, level) for v, level in zip(row, node, strict=True)) for row in rows]
    return [sum(fit(mine, theirs) for theirs in seen) for mine in seen]


def keeps(model: str, most: float, crowd: list[int]) -> bool:
    if model == "average-risk":
        return sum(1 / n for n in crowd) / len(crowd) <= most + 1e-12
    return sum(n == 1 for n in crowd) / len(crowd) <= most + 1e-12


def policy(model: str, most: float, nodes: tuple[int, ...] | None = None, **release: object) -> shoal.Policy:
    levels = ({} if nodes is None else {"min_level": level, "max_level": level} for level in nodes or (0, 0))
    require = [{"model": model, "max": most}] if nodes is None else [{"model": "k-anonymity", "k": 1}]
    return shoal.Policy.of({
        "columns": {
            name: {"role": "quasi", "hierarchy": {"mask": "right"}, **of}
            for name, of in zip(("a", "b"), levels, strict=True)
        },
        "require": require,
        "release": {"nulls": "wildcard", **release},
    })  # fmt: skip


def drawn(seed: int) -> list[tuple[str | None, ...]]:
    rng = random.Random(seed)
    values = ["ka", "kb", "la", "lb", None]
    return [tuple(rng.choices(values, [3, 2, 2, 1, 2])[0] for _ in "ab") for _ in range(rng.randint(4, 9))]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("model", ["average-risk", "sample-uniqueness"])
def test_no_generalization_that_keeps_the_limit_loses_less(model: str, seed: int) -> None:
    rows = drawn(seed)
    most = random.Random(seed).choice([0.0, 0.2, 0.25, 0.35] if model == "sample-uniqueness" else [0.2, 0.3, 0.4])
    table = pa.table({name: [row[j] for row in rows] for j, name in enumerate("ab")})
    losses = [
        shoal.anonymize(table, policy(model, most, node)).loss["loss"]
        for node in itertools.product(range(LEVELS), repeat=2)
        if keeps(model, most, crowds(rows, node))
    ]
    try:
        release = shoal.anonymize(table, policy(model, most))
    except InfeasibleError:
        assert not losses
        return
    assert release.recoding.proved
    assert release.loss["loss"] == pytest.approx(min(losses))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("model", ["average-risk", "sample-uniqueness"])
def test_a_release_with_records_suppressed_keeps_the_limit_and_claims_no_more(model: str, seed: int) -> None:
    rows = drawn(100 + seed)
    table = pa.table({name: [row[j] for row in rows] for j, name in enumerate("ab")})
    try:
        release = shoal.anonymize(table, policy(model, 0.25, max_suppression=0.5))
    except InfeasibleError:
        return
    kept = [tuple(row) for row in zip(*(release.table[name].to_pylist() for name in "ab"), strict=True)]
    assert keeps(model, 0.25, [sum(fit(mine, theirs) for theirs in kept) for mine in kept])
    assert shoal.check(release.table, policy(model, 0.25)).holds
    if release.suppressed:
        assert not release.recoding.proved
