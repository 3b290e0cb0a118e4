"""Releases whose success rates are known, by construction or by brute force (exact_attacks.py): see attacks_truth.py.

For every attack there is one that falls to it, one that cannot, and some in between; some are recoded by shoal, in
every way it has, and some are labelled as other programs do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from exact_attacks import Exact, Figure
from numpy.typing import NDArray
from scipy.stats import binom

import shoal
from shoal.attacks import run
from shoal.attacks.risk import Attacks

Random = np.random.Generator
Columns = dict[str, list[str]]
QUASI = ("age", "sex", "region")
REGIONS = ("a", "b", "c", "d")
SHARES = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)
ORDER = "unsorted matching"
# Who has nothing but the release; who knows more gets further by chance too.
ALONE = ("singling out", "identity linking", "homogeneity", "similarity", "skewness", "inference")


def _skipping(risks: tuple[Any, ...], *arguments: Any, **named: Any) -> Attacks:
    return Attacks(tuple(risk for risk in risks if risk is not None), *arguments, **named)


@dataclass(frozen=True)
class Draw:
    """People, and a release whose record ``i`` is that of the person with the same id."""

    people: Columns
    records: Columns
    exact: dict[str, Figure] | None = None  # by construction; None: by brute force
    policy: shoal.Policy | None = None
    previous: Columns | None = None
    nearest: bool = False  # numbers were changed
    attacks: tuple[str, ...] = ()  # that are asked for; none: all that have an exact figure

    @property
    def quasi(self) -> tuple[str, ...]:
        return tuple(name for name in self.people if name not in ("id", "illness"))

    def attacked(self) -> Attacks:
        roles = {"quasi": self.quasi, "sensitive": ["illness"], "id": "id", "sample": None, "policy": self.policy}
        with contextlib.ExitStack() as patched:
            if ORDER not in self.attacks:  # a question of its own, which takes most of the time
                patched.enter_context(mock.patch.object(run, "unsorted_matching", return_value=None))
                patched.enter_context(mock.patch.object(run, "Attacks", _skipping))
            previous = None if self.previous is None else pa.table(self.previous)
            return shoal.attack(
                pa.table(self.records),
                original=pa.table(self.people),
                intruder=shoal.Intruder(previous=previous),
                **roles,
            )

    def by_brute_force(self) -> dict[str, Figure]:
        if self.exact is not None:
            return self.exact
        if self.previous is not None:
            return {"complementary release": self._exact(self.records).complementary(self._exact(self.previous))}
        return self._exact(self.records).figures()

    def _exact(self, records: Columns) -> Exact:
        row_of_id = {text: i for i, text in enumerate(records["id"])}
        owner = np.array([row_of_id.get(text, -1) for text in self.people["id"]])
        return Exact(self.people, records, owner, self.quasi, "illness", nearest=self.nearest)


def people(random: Random, n: int) -> Columns:
    """Nothing says anything about the illness."""
    return {
        "id": [str(i) for i in range(n)],
        "age": [str(v) for v in random.integers(20, 70, n)],
        "sex": list(random.choice(["f", "m"], n)),
        "region": list(random.choice(REGIONS, n)),
        "illness": [str(v) for v in random.choice(np.arange(1, 7), n, p=SHARES)],
    }


def mixed(random: Random, records: Columns) -> Columns:
    """The same records in random order."""
    order = random.permutation(len(records["id"]))
    return {name: [values[i] for i in order] for name, values in records.items()}


def decade(age: str, style: str = "{}-{}") -> str:
    first = int(age) // 10 * 10
    return style.format(first, first + (9 if "-" in style else 10))


# ── Releases ────────────────────────────────────────────────────────────────────────────────────────────────


def raw(random: Random, n: int) -> Draw:
    """As it is, with a number that few share."""
    originals = people(random, n)
    originals["zip"] = [str(v) for v in random.integers(0, n, n)]
    return Draw(originals, mixed(random, originals))


def shuffled(random: Random, n: int) -> Draw:
    """Decades, and every column in an order of its own: nothing belongs together."""
    originals = people(random, n)
    records = {name: list(random.permutation(values)) for name, values in originals.items()}
    records["age"] = [decade(age) for age in records["age"]]
    # What works by chance is no more than the control gets; how often that is, the draws tell.
    return Draw(originals, mixed(random, records), exact={}, attacks=ALONE)


def stars(random: Random, n: int) -> Draw:
    """A fifth of the cells hidden, the others as they are."""
    originals = people(random, n)
    records = dict(originals)
    for name in QUASI:
        records[name] = ["*" if hide else v for v, hide in zip(originals[name], random.random(n) < 0.2, strict=True)]
    return Draw(originals, mixed(random, records))


def ranges(random: Random, n: int) -> Draw:
    """Classes by decade in the style of another tool; the illness is any."""
    originals = people(random, n)
    ages = [decade(age, "[{}, {}[") for age in originals["age"]]
    return Draw(originals, mixed(random, {**originals, "age": ages, "sex": ["*"] * n, "region": ["*"] * n}))


def every_cell_a_star_or_value(random: Random, n: int) -> Draw:
    """The same, but every third class has one illness only."""
    originals = people(random, n)
    key = [(int(age) // 10 * 2 + (sex == "f")) % 3 for age, sex in zip(originals["age"], originals["sex"], strict=True)]
    originals["illness"] = ["2" if third == 0 else v for v, third in zip(originals["illness"], key, strict=True)]
    ages = [decade(age, "[{}, {})") for age in originals["age"]]
    return Draw(originals, mixed(random, {**originals, "age": ages, "region": ["*"] * n}))


def small(random: Random, n: int) -> Draw:
    """Classes of about five that lie anywhere, one illness in every other one."""
    n_classes = max(2, n // 5)
    class_of = random.integers(0, n_classes, n)
    is_uniform = random.random(n_classes) < 0.5
    first = random.choice(np.arange(1, 7), n_classes, p=SHARES)
    illness_of_row = random.choice(np.arange(1, 7), n, p=SHARES)
    originals = {
        "id": [str(i) for i in range(n)],
        "age": [str(v) for v in class_of * 10 + random.integers(0, 10, n)],
        "illness": [str(v) for v in np.where(is_uniform[class_of], first[class_of], illness_of_row)],
    }
    return Draw(originals, mixed(random, {**originals, "age": [decade(age) for age in originals["age"]]}))


def grouped(random: Random, class_of: NDArray[np.int64], illness: NDArray[np.int64]) -> Draw:
    """Classes as given, of people whose ages lie in their decade of the class."""
    originals = {
        "id": [str(i) for i in range(len(class_of))],
        "age": [str(v) for v in class_of * 10 + random.integers(0, 10, len(class_of))],
        "illness": [str(v) for v in illness],
    }
    return Draw(originals, mixed(random, {**originals, "age": [decade(age) for age in originals["age"]]}))


def pairs(random: Random, n: int) -> Draw:
    """Classes of two with two illnesses: who knows anything more knows everything."""
    illness = np.concatenate([random.choice(np.arange(1, 7), 2, replace=False, p=SHARES) for _ in range(n // 2)])
    return grouped(random, np.repeat(np.arange(n // 2), 2), illness)


def diverse(random: Random, n: int) -> Draw:
    """Every class has each of six illnesses once: nobody is certain of anything, whatever else is known."""
    illness = np.concatenate([random.permutation(6) + 1 for _ in range(n // 6)])
    return grouped(random, np.repeat(np.arange(n // 6), 6), illness)


def threes(random: Random, n: int) -> Draw:
    """Classes of three: with three illnesses, with two, or with one."""
    kinds = random.integers(1, 4, n // 3)
    drawn = [random.choice(np.arange(1, 7), kind, replace=False, p=SHARES) for kind in kinds]
    illness = np.concatenate([np.resize(values, 3) for values in drawn])
    return grouped(random, np.repeat(np.arange(n // 3), 3), illness)


def of_other_tools(random: Random, n: int) -> Draw:
    """Labels as others write them: 351xx, 30s, [20,30)."""
    originals = people(random, n)
    originals["zip"] = [str(v) for v in random.integers(35000, 35000 + 200 * max(1, n // 100), n)]
    originals["weight"] = [str(v) for v in random.integers(50, 100, n)]
    records = {
        **originals,
        "age": [f"{age[0]}0s" for age in originals["age"]],
        "zip": [f"{code[:3]}xx" for code in originals["zip"]],
        "weight": [decade(weight, "[{},{})") for weight in originals["weight"]],
        "region": ["*"] * n,
    }
    return Draw(originals, mixed(random, records))


def sets(random: Random, n: int) -> Draw:
    """Cells recoded one by one: as they are, a set, a range or a star."""
    originals = people(random, n)
    records = dict(originals)
    how = random.random((2, n))
    records["region"] = [
        v if h < 0.4 else "*" if h > 0.8 else "{a, b}" if v in "ab" else "{c, d}"
        for v, h in zip(originals["region"], how[0], strict=True)
    ]
    records["age"] = [
        v if h < 0.2 else "*" if h > 0.9 else decade(v) for v, h in zip(originals["age"], how[1], strict=True)
    ]
    return Draw(originals, mixed(random, records))


def means(random: Random, n: int) -> Draw:
    """Groups of five far from each other, released as their means; by construction a link is right once in five."""
    group = np.repeat(np.arange(n // 5), 5)
    illness = random.choice(np.arange(1, 7), n, p=SHARES)
    x = group * 100.0 + np.tile([1.0, 2.0, 3.0, 4.0, 6.0], n // 5)
    originals = {"id": [str(i) for i in range(n)], "x": [f"{v:g}" for v in x], "illness": [str(v) for v in illness]}
    records = {**originals, "x": [f"{v:g}" for v in group * 100 + 3.2]}
    exact = {"singling out": Figure(0.0, 0.0), "identity linking": Figure(0.2, 1 / n)}
    shares = np.bincount(illness, minlength=7) / n
    in_class = np.array([np.bincount(illness[group == g], minlength=7) for g in range(n // 5)])
    is_uniform = (in_class > 0).sum(axis=1) == 1
    exact["homogeneity"] = Figure(
        float(is_uniform.mean()), float((is_uniform * shares[in_class.argmax(axis=1)]).mean())
    )
    return Draw(originals, mixed(random, records), exact)


def searched(algorithm: str) -> Callable[[Random, int], Draw]:
    """A release of shoal's own, with k = 5."""

    def make(random: Random, n: int) -> Draw:
        originals = people(random, n)
        policy = shoal.Policy.of({
            "columns": {
                "id": {"role": "plain"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
                "sex": {"role": "quasi"},
                "region": {"role": "quasi", "hierarchy": {"tree": {"*": {"{a, b}": ["a", "b"], "{c, d}": ["c", "d"]}}}},
                "illness": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": 5}],
            "release": {"algorithm": algorithm, "seed": int(random.integers(2**31))},
        })  # fmt: skip
        table = shoal.anonymize(pa.table(originals), policy).table
        return Draw(originals, {name: [str(v) for v in table[name].to_pylist()] for name in originals})

    return make


def averaged(random: Random, n: int) -> Draw:
    """Means of shoal's own, of classes of at least five."""
    originals = people(random, n)
    originals = {
        "id": originals["id"],
        "x": [f"{v:.3f}" for v in random.random(n) * n],
        "illness": originals["illness"],
    }
    policy = shoal.Policy.of({
        "columns": {
            "id": {"role": "plain"},
            "x": {"role": "quasi", "hierarchy": {"intervals": [n]}, "cells": "mean"},
            "illness": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"algorithm": "mdav"},
    })  # fmt: skip
    table = shoal.anonymize(pa.table(originals), policy).table
    records = {name: [str(v) for v in table[name].to_pylist()] for name in originals}
    return Draw(originals, records, nearest=True)


# ── More than one release, more than the release, the order of its rows ─────────────────────────────────────


def crossing(kind: str) -> Callable[[Random, int], Draw]:
    """Two releases of people on a grid: one shows the row of the grid, one the column, or both the row.

    In ``falls`` each row and column have two illnesses, one of them in common; in ``between`` some illness each.
    """

    def make(random: Random, n: int) -> Draw:
        block, at = np.arange(n // 4 * 4) // 4, np.arange(n // 4 * 4) % 4
        illness = at + 1 if kind != "between" else random.integers(1, 5, len(at))
        originals = {
            "id": [str(i) for i in range(len(at))],
            "block": [str(v) for v in block],
            "row": [str(v) for v in at // 2],
            "column": [str(v) for v in at % 2],
            "illness": [str(v) for v in illness],
        }
        hidden = ["*"] * len(at)
        records = mixed(random, {**originals, "column": hidden})
        other = {**originals, "column": hidden} if kind == "cannot" else {**originals, "row": hidden}
        return Draw(originals, records, previous=mixed(random, other), attacks=("complementary release",))

    return make


FIVE, EIGHT = 5, 8  # people of a block whose release one step finer would show them as one class each
ILLNESSES = np.repeat([1, 2, 3], [5, 4, 4])


def nothing_finer(kind: str) -> Callable[[Random, int], Draw]:
    """Blocks of thirteen, of whom five are of one sex; they are told apart one step below, which was not allowed.

    The finer release fails where the five have one illness, the first: there are too few of the others. More records
    may be suppressed than fail in all blocks but one (``falls``) or in half of them (``between``), so that all blocks,
    or half of them, must fail. In ``cannot`` five are fewer than k.
    """

    def make(random: Random, n: int) -> Draw:
        n_blocks = n // len(ILLNESSES)
        n_required = n_blocks if kind == "falls" else (n_blocks + 1) // 2
        fails = np.zeros(n_blocks, np.bool_)
        fails[random.permutation(n_blocks)[:n_required]] = kind != "cannot"
        dealt = np.stack([ILLNESSES if fail else random.permutation(ILLNESSES) for fail in fails])
        block = np.repeat(np.arange(n_blocks), len(ILLNESSES))
        five = np.tile(np.arange(len(ILLNESSES)) < FIVE, n_blocks)
        originals = {
            "id": [str(i) for i in range(len(block))],
            "block": [str(v) for v in block],
            "sex": list(np.where(five, "f", "m")),
            "illness": [str(v) for v in dealt.ravel()],
        }
        policy = shoal.Policy.of({
            "columns": {
                "id": {"role": "plain"},
                "block": {"role": "quasi", "max_level": 0},
                "sex": {"role": "quasi"},
                "illness": {"role": "sensitive"},
            },
            "require": [
                {"model": "k-anonymity", "k": 6 if kind == "cannot" else 2},
                {"model": "distinct-l-diversity", "l": 2},
            ],
            "release": {"max_suppression": 0.0 if kind == "cannot" else (FIVE * n_required - 0.5) / len(block)},
        })  # fmt: skip
        blind = FIVE / len(ILLNESSES)
        learned = blind if kind == "cannot" else _learned(dealt, n_blocks, n_required)
        exact = {"minimality": Figure(learned, blind)}
        return Draw(originals, mixed(random, {**originals, "sex": ["*"] * len(block)}), exact, policy)

    return make


def _learned(dealt: NDArray[np.int64], n_blocks: int, n_required: int) -> float:
    """How often the likeliest illness of each group is right, if at least so many blocks failed."""
    n, counts = len(ILLNESSES), np.array([5.0, 4.0, 4.0])
    chance = 1 / comb(n, FIVE)  # that the five of a block have the first illness, all of them
    failed = chance * float(
        np.exp(_at_least(n_required - 1, n_blocks - 1, chance) - _at_least(n_required, n_blocks, chance))
    )
    first = np.array([1.0, 0, 0]) * FIVE
    otherwise = (counts * FIVE / n - chance * first) / (1 - chance)  # of the five, where they did not fail
    of_five = failed * first + (1 - failed) * otherwise
    right = np.zeros(len(dealt))
    for members, value_counts in ((dealt[:, :FIVE], of_five), (dealt[:, FIVE:], counts - of_five)):
        likeliest = np.flatnonzero(value_counts >= value_counts.max() - 1e-9) + 1
        right += np.isin(members, likeliest).sum(axis=1) / len(likeliest)
    return float(right.sum() / dealt.size)


def _at_least(minimum: int, n: int, chance: float) -> float:
    """The logarithm of the chance of so many successes in n trials, however small it is."""
    return float(np.logaddexp.reduce(binom.logpmf(np.arange(minimum, n + 1), n, chance)))


def in_order(kept_share: float) -> Callable[[Random, int], Draw]:
    """Classes of ten people anywhere in the table; the order of their rows is kept in a share of the classes."""

    def make(random: Random, n: int) -> Draw:
        class_of = random.permutation(np.repeat(np.arange(n // 10), 10))
        illness = random.choice(np.arange(1, 7), len(class_of), p=SHARES)
        draw = grouped(random, class_of, illness)
        sort_key = np.where(
            random.random(n // 10)[class_of] < kept_share,
            np.arange(len(class_of)),
            len(class_of) * random.random(len(class_of)),
        )
        order = random.permutation(len(class_of))
        if kept_share:
            order = np.arange(len(class_of)) if kept_share == 1 else np.lexsort((sort_key, class_of))
        labels = [decade(age) for age in draw.people["age"]]
        records = {**draw.people, "age": labels}
        records = {name: [values[i] for i in order] for name, values in records.items()}
        by_order = by_chance = 0.0
        for class_number in range(n // 10):
            mine, theirs = illness[class_of == class_number], illness[order][class_of[order] == class_number]
            by_order += float((mine == theirs).sum())
            by_chance += float((np.bincount(mine) ** 2).sum() / 10)
        exact = {ORDER: Figure((by_order if kept_share else by_chance) / len(class_of), by_chance / len(class_of))}
        return Draw(draw.people, records, exact, attacks=(ORDER,))

    return make


SHUFFLED = "every column shuffled"
RANDOM_ORDER = "rows in random order"
RELEASES: dict[str, Callable[[Random, int], Draw]] = {
    "raw": raw,
    SHUFFLED: shuffled,
    "a fifth of the cells stars": stars,
    "decades, illness any": ranges,
    "decades, a third of the classes alike": every_cell_a_star_or_value,
    "classes of five, half of them alike": small,
    "classes of two, two illnesses": pairs,
    "classes of three, one to three illnesses": threes,
    "classes of six, six illnesses": diverse,
    "cells as sets, ranges, stars": sets,
    "351xx, 30s, [20,30) of other tools": of_other_tools,
    "means of five": means,
    "shoal: optimal": searched("optimal"),
    "shoal: mondrian": searched("mondrian"),
    "shoal: local": searched("local"),
    "shoal: suppress_cells": searched("suppress_cells"),
    "shoal: mdav, means": averaged,
    "two releases that cross": crossing("falls"),
    "two releases, illness any": crossing("between"),
    "two releases, the same": crossing("cannot"),
    "nothing finer, in no block": nothing_finer("falls"),
    "nothing finer, in half of the blocks": nothing_finer("between"),
    "nothing finer, for sizes": nothing_finer("cannot"),
    "rows in order": in_order(1.0),
    "rows in order in half of the classes": in_order(0.5),
    RANDOM_ORDER: in_order(0.0),
}
# What works here, works by chance.
BY_CHANCE = frozenset({SHUFFLED, RANDOM_ORDER})
# Of the rows that stand in order it is reported what somebody finds who is told where others begin.
UPPER = frozenset({"rows in order in half of the classes"})
# The search chooses other levels in every draw, which is no sampling error: the rate of one draw is not that of others.
CHOSEN = frozenset(name for name in RELEASES if name.startswith("shoal"))
