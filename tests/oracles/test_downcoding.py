"""Downcoding against all possible originals of small classes, listed one by one and written by the rule itself."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from shoal.attacks.downcoding import Downcoded, downcoded
from shoal.attacks.label_columns import NO_LEAVES, LabelColumn
from shoal.attacks.label_rules import (
    LabelRule,
    ProvedLabel,
    family_rule,
    lowest_label_rule,
    shares_given,
    tight_range_rule,
    tight_set_rule,
)
from shoal.hierarchies.hierarchy import Hierarchy

Written = frozenset[int]
Write = Callable[[frozenset[int]], Written]


def tree(n_leaves: int, splits: tuple[int, ...]) -> Hierarchy:
    """Numbers 0 … n − 1, grouped between the splits, then under one top."""
    leaves = [str(leaf) for leaf in range(n_leaves)]
    groups = [f"group {sum(leaf >= split for split in splits)}" for leaf in range(n_leaves)]
    return Hierarchy.from_levels("x", leaves, [leaves, groups, ["*"] * n_leaves], leaf_order="numeric")


def lowest_label(hierarchy: Hierarchy) -> Write:
    def write(values: frozenset[int]) -> Written:
        for codes in hierarchy.table:
            if len({int(codes[value]) for value in values}) == 1:
                own = int(codes[next(iter(values))])
                return frozenset(np.flatnonzero(codes == own).tolist())
        raise AssertionError("the top covers everything")

    return write


def least_of(family: list[frozenset[int]]) -> Write:
    return lambda values: min((one for one in family if values <= one), key=len)


def windows(n_leaves: int, step: int) -> list[frozenset[int]]:
    """Single values, and ranges that begin and end on a grid."""
    grid = [
        frozenset(range(first, min(last, n_leaves)))
        for first in range(0, n_leaves, step)
        for last in range(first + step, n_leaves + step, step)
    ]
    return [*(frozenset({leaf}) for leaf in range(n_leaves)), *dict.fromkeys(grid)]


def ways(n_leaves: int, random: np.random.Generator) -> Iterator[tuple[Write, LabelRule]]:
    """How a column may be written, and the rule that says what that proves."""
    splits = tuple(split for split in range(1, n_leaves) if random.random() < 0.5)
    hierarchy = tree(n_leaves, splits)
    yield lambda values: frozenset(range(min(values), max(values) + 1)), tight_range_rule(hierarchy)
    yield lambda values: values, tight_set_rule(hierarchy)
    yield lowest_label(hierarchy), lowest_label_rule(hierarchy)
    grid = windows(n_leaves, int(random.integers(1, 4)))
    yield least_of(grid), family_rule([np.array(sorted(one)) for one in grid])


def column(rule: LabelRule, n_leaves: int, text: Written, n: int, weights: np.ndarray | None = None) -> LabelColumn:
    """A column in which all records show one text."""
    leaves = np.array(sorted(text), np.int64)
    label = ProvedLabel(leaves, rule(leaves) if len(leaves) > 1 else ())
    domain = tuple(map(str, range(n_leaves)))
    return LabelColumn(
        "x", domain, (label,), np.zeros(n, np.int64), None, np.ones(n_leaves) if weights is None else weights,
        (NO_LEAVES,),
    )  # fmt: skip


@cache
def multisets(n_tuples: int, n: int) -> tuple[tuple[int, ...], ...]:
    return tuple(combinations_with_replacement(range(n_tuples), n))


def always(originals: list[Counter[object]]) -> int:
    """How many are in all of them, counted as often as where each is rarest."""
    return sum(min(each[value] for each in originals) for value in originals[0])


def figures(found: Downcoded) -> tuple[int, int]:
    return len(found.tuples) + found.n_single, len(found.certain)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_certain_is_in_all_possible_originals_and_nothing_else_is(seed: int) -> None:
    random, n_certain = np.random.default_rng(seed), 0
    for _ in range(250):
        n_leaves = int(random.integers(2, 6))
        n_columns = int(random.integers(1, 3)) if n_leaves < 4 else 1
        n = int(random.integers(1, 5))
        kinds = [list(ways(n_leaves, random))[int(random.integers(4))] for _ in range(n_columns)]
        truth = random.integers(0, n_leaves, (n, n_columns))
        texts = [write(frozenset(truth[:, j].tolist())) for j, (write, _) in enumerate(kinds)]
        tuples = list(product(*map(sorted, texts)))
        originals = []
        for chosen in multisets(len(tuples), n):
            rows = [tuples[i] for i in chosen]
            if all(write(frozenset(row[j] for row in rows)) == texts[j] for j, (write, _) in enumerate(kinds)):
                originals.append(rows)
        found = downcoded([column(rule, n_leaves, texts[j], n) for j, (_, rule) in enumerate(kinds)])
        whole = always([Counter(rows) for rows in originals])
        cells = sum(
            always([Counter(row[j] for row in rows) for rows in originals])
            for j, text in enumerate(texts)
            if len(text) > 1
        )
        general = any(len(text) > 1 for text in texts)
        assert figures(found) == ((whole if general else 0), cells)
        n_certain += cells
    assert n_certain > 100


@pytest.mark.parametrize("seed", range(4))
def test_likelihoods_are_those_of_all_sequences_of_records(seed: int) -> None:
    random, n_moved = np.random.default_rng(100 + seed), 0
    for _ in range(60):
        n_leaves, n = int(random.integers(2, 6)), int(random.integers(1, 6))
        write, rule = list(ways(n_leaves, random))[int(random.integers(4))]
        text = write(frozenset(random.integers(0, n_leaves, n).tolist()))
        weights = random.uniform(0.1, 1, n_leaves)
        leaves = sorted(text)
        expected, total = np.zeros(n_leaves), 0.0
        for drawn in product(leaves, repeat=n):
            if write(frozenset(drawn)) == text:
                chance = float(np.prod(weights[list(drawn)]))
                total += chance
                expected += chance * np.bincount(drawn, minlength=n_leaves) / n
        label = column(rule, n_leaves, text, n).labels[0]
        shares = shares_given(label, n, weights, 1 << 20)
        assert shares is not None
        assert shares == pytest.approx(expected[leaves] / total)
        n_moved += bool(np.abs(shares - weights[leaves] / weights[leaves].sum()).max() > 1e-6)
    assert n_moved > 20


def test_more_steps_than_allowed_are_left_alone() -> None:
    hierarchy = tree(6, (3,))
    label = column(tight_set_rule(hierarchy), 6, frozenset(range(6)), 9).labels[0]
    assert shares_given(label, 9, np.ones(6), 100) is None
    found = downcoded([column(tight_set_rule(hierarchy), 6, frozenset(range(6)), 200)])
    assert (found.n_unsolved, figures(found)) == (200, (6, 6))


def test_what_is_fixed_proves_no_more_than_what_is_tight() -> None:
    """The least window of a grid covers more than the least range, and never gives back what that does not."""
    random = np.random.default_rng(0)
    for _ in range(400):
        n_leaves, n = int(random.integers(3, 9)), int(random.integers(2, 6))
        values = frozenset(random.integers(0, n_leaves, n).tolist())
        grid = windows(n_leaves, 2)
        tight = frozenset(range(min(values), max(values) + 1))
        fixed = least_of(grid)(values)
        if len(fixed) == 1:
            continue
        tight_column = column(tight_range_rule(tree(n_leaves, ())), n_leaves, tight, n)
        fixed_column = column(family_rule([np.array(sorted(one)) for one in grid]), n_leaves, fixed, n)
        certain = set(downcoded([fixed_column]).certain.leaf.tolist())
        assert certain <= set(downcoded([tight_column]).certain.leaf.tolist()) | (
            {*tight} if len(tight) == 1 else set()
        )


def test_pairs_of_columns_never_give_back_a_tuple() -> None:
    """Every two general columns: the values of one can be dealt to the records of the other so that none is certain."""
    for n, (a, b) in product((2, 3), combinations(range(2, 5), 2)):
        columns = [column(tight_set_rule(tree(size, ())), size, frozenset(range(size)), n) for size in (a, b)]
        assert len(downcoded(columns).tuples) == 0
