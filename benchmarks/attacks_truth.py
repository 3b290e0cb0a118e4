"""Do attacks tell the truth?

Releases whose success rates are known, by construction or by brute force (exact_attacks.py), are drawn again and again
and attacked. For each kind of release and each attack: the rate that was reported and the exact one, both averaged over
the draws; the largest difference between the two on one draw; how often a harmless release was called possible, how
often one that falls was called tolerated; and how often the 95 % interval held the rate of all draws. ``--write`` puts
the table into docs/attacks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from exact_attacks import Exact, Figure

import shoal
from shoal.attacks import run
from shoal.attacks.risk import TOLERANCES, Attacks

Random = np.random.Generator
Columns = dict[str, list[str]]
QUASI = ("age", "sex", "region")
REGIONS = ("a", "b", "c", "d")
SHARES = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)
START, END = "<!-- attacks_truth.py, {} people -->\n", "<!-- end -->\n"


def _without(risks: tuple[Any, ...], *more: Any, **named: Any) -> Attacks:
    return Attacks(tuple(risk for risk in risks if risk is not None), *more, **named)


@dataclass(frozen=True)
class Draw:
    """People, and a release whose record ``i`` is that of the person with the same id."""

    people: Columns
    records: Columns
    exact: dict[str, Figure] | None = None  # by construction; None: by brute force
    policy: shoal.Policy | None = None

    def attacked(self) -> Attacks:
        quasi = [name for name in self.people if name not in ("id", "illness")]
        known = {"quasi": quasi, "sensitive": ["illness"], "id": "id", "sample": None}
        # The order of the rows is a question of its own, and takes most of the time.
        with (
            mock.patch.object(run, "unsorted_matching", return_value=None),
            mock.patch.object(run, "Attacks", _without),
        ):
            return shoal.attack(pa.table(self.records), original=pa.table(self.people), **known)

    def by_brute_force(self) -> dict[str, Figure]:
        if self.exact is not None:
            return self.exact
        place = {text: i for i, text in enumerate(self.records["id"])}
        owner = np.array([place.get(text, -1) for text in self.people["id"]])
        quasi = tuple(name for name in self.people if name not in ("id", "illness"))
        return Exact(self.people, self.records, owner, quasi, "illness").figures()


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
    found = people(random, n)
    found["zip"] = [str(v) for v in random.integers(0, n, n)]
    return Draw(found, mixed(random, found))


def shuffled(random: Random, n: int) -> Draw:
    """Decades, and every column in an order of its own: nothing belongs together."""
    found = people(random, n)
    records = {name: list(random.permutation(values)) for name, values in found.items()}
    records["age"] = [decade(age) for age in records["age"]]
    # What works by chance is no more than the control gets; how often that is, the draws tell.
    return Draw(found, mixed(random, records), exact={})


def stars(random: Random, n: int) -> Draw:
    """A fifth of the cells hidden, the others as they are."""
    found = people(random, n)
    records = dict(found)
    for name in QUASI:
        records[name] = ["*" if hide else v for v, hide in zip(found[name], random.random(n) < 0.2, strict=True)]
    return Draw(found, mixed(random, records))


def ranges(random: Random, n: int) -> Draw:
    """Classes by decade in the style of another tool; the illness is any."""
    found = people(random, n)
    ages = [decade(age, "[{}, {}[") for age in found["age"]]
    return Draw(found, mixed(random, {**found, "age": ages, "sex": ["*"] * n, "region": ["*"] * n}))


def telling(random: Random, n: int) -> Draw:
    """The same, but every third class has one illness only."""
    found = people(random, n)
    key = [(int(age) // 10 * 2 + (sex == "f")) % 3 for age, sex in zip(found["age"], found["sex"], strict=True)]
    found["illness"] = ["2" if third == 0 else v for v, third in zip(found["illness"], key, strict=True)]
    ages = [decade(age, "[{}, {})") for age in found["age"]]
    return Draw(found, mixed(random, {**found, "age": ages, "region": ["*"] * n}))


def small(random: Random, n: int) -> Draw:
    """Classes of about five that lie anywhere, one illness in every other one."""
    n_classes = max(2, n // 5)
    of = random.integers(0, n_classes, n)
    one = random.random(n_classes) < 0.5
    first = random.choice(np.arange(1, 7), n_classes, p=SHARES)
    own = random.choice(np.arange(1, 7), n, p=SHARES)
    found = {
        "id": [str(i) for i in range(n)],
        "age": [str(v) for v in of * 10 + random.integers(0, 10, n)],
        "illness": [str(v) for v in np.where(one[of], first[of], own)],
    }
    return Draw(found, mixed(random, {**found, "age": [decade(age) for age in found["age"]]}))


def sets(random: Random, n: int) -> Draw:
    """Cells recoded one by one: as they are, a set, a range or a star."""
    found = people(random, n)
    records = dict(found)
    how = random.random((2, n))
    records["region"] = [
        v if h < 0.4 else "*" if h > 0.8 else "{a, b}" if v in "ab" else "{c, d}"
        for v, h in zip(found["region"], how[0], strict=True)
    ]
    records["age"] = [
        v if h < 0.2 else "*" if h > 0.9 else decade(v) for v, h in zip(found["age"], how[1], strict=True)
    ]
    return Draw(found, mixed(random, records))


def means(random: Random, n: int) -> Draw:
    """Groups of five far from each other, released as their means; by construction a link is right once in five."""
    group = np.repeat(np.arange(n // 5), 5)
    illness = random.choice(np.arange(1, 7), n, p=SHARES)
    x = group * 100.0 + np.tile([1.0, 2.0, 3.0, 4.0, 6.0], n // 5)
    found = {"id": [str(i) for i in range(n)], "x": [f"{v:g}" for v in x], "illness": [str(v) for v in illness]}
    records = {**found, "x": [f"{v:g}" for v in group * 100 + 3.2]}
    exact = {"singling out": Figure(0.0, 0.0), "identity linking": Figure(0.2, 1 / n)}
    shares = np.bincount(illness, minlength=7) / n
    in_class = np.array([np.bincount(illness[group == g], minlength=7) for g in range(n // 5)])
    same = (in_class > 0).sum(axis=1) == 1
    exact["homogeneity"] = Figure(float(same.mean()), float((same * shares[in_class.argmax(axis=1)]).mean()))
    return Draw(found, mixed(random, records), exact)


def searched(algorithm: str) -> Callable[[Random, int], Draw]:
    """A release of shoal's own, with k = 5."""

    def make(random: Random, n: int) -> Draw:
        found = people(random, n)
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
        table = shoal.anonymize(pa.table(found), policy).table
        return Draw(found, {name: [str(v) for v in table[name].to_pylist()] for name in found})

    return make


SHUFFLED = "every column shuffled"
RELEASES: dict[str, Callable[[Random, int], Draw]] = {
    "raw": raw,
    SHUFFLED: shuffled,
    "a fifth of the cells stars": stars,
    "decades, illness any": ranges,
    "decades, a third of the classes alike": telling,
    "classes of five, half of them alike": small,
    "cells as sets, ranges, stars": sets,
    "means of five": means,
    "shoal: optimal": searched("optimal"),
    "shoal: mondrian": searched("mondrian"),
    "shoal: local": searched("local"),
    "shoal: suppress_cells": searched("suppress_cells"),
}
# The search chooses other levels in every draw, which is no sampling error: the rate of one draw is not that of others.
CHOSEN = frozenset(name for name in RELEASES if name.startswith("shoal"))


# ── Figures ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Line:
    """One attack on one kind of release."""

    share: list[float] = field(default_factory=list)
    above: list[float] = field(default_factory=list)
    ends: list[tuple[float, float]] = field(default_factory=list)
    beyond: list[tuple[float, float]] = field(default_factory=list)
    alarms: list[bool] = field(default_factory=list)  # whether it was called possible
    misses: list[bool] = field(default_factory=list)  # whether it was called tolerated, and was not
    exact: list[Figure] = field(default_factory=list)
    apart: float = 0.0
    chance: bool = False
    question: str = ""

    @property
    def rate(self) -> float:
        """Exact, averaged over the draws; reported where these were shown to be the same."""
        known = [figure.share for figure in self.exact] if len(self.exact) == len(self.share) else self.share
        return float(np.mean(known))

    @property
    def rate_above(self) -> float:
        if self.chance:
            return 0.0
        if len(self.exact) < len(self.share):
            return float(np.mean(self.above))
        share, control = (float(np.mean([getattr(f, what) for f in self.exact])) for what in ("share", "control"))
        return Figure(share, control).above

    @property
    def tolerance(self) -> float:
        return TOLERANCES[self.question]  # type: ignore[index]

    def coverage(self) -> tuple[float, float]:
        """How often the intervals hold the rate of all draws, and what it leaves beyond the control."""
        return tuple(
            float(np.mean([low - 1e-9 <= rate <= high + 1e-9 for low, high in ends]))
            for rate, ends in ((self.rate, self.ends), (self.rate_above, self.beyond))
        )  # type: ignore[return-value]


def measured(
    make: Callable[[Random, int], Draw], n: int, seeds: range, checked: int, *, chance: bool
) -> dict[str, Line]:
    """Attack as many draws as there are seeds, and lay the first ones beside brute force.

    ``chance``: whatever works, works by chance.
    """
    lines: dict[str, Line] = {}
    for i, seed in enumerate(seeds):
        draw = make(np.random.default_rng([seed, n]), n)
        found = draw.attacked()
        exact = draw.by_brute_force() if i < checked else {}
        for name in ("singling out", "identity linking", "homogeneity", "similarity", "skewness", "inference"):
            if not any(risk.name == name for risk in found) or (draw.exact and name not in draw.exact):
                continue
            risk, line = found.named(name), lines.setdefault(name, Line(chance=chance))
            line.question = risk.question
            line.share.append(risk.share)
            line.above.append(risk.above)
            line.ends.append(risk.interval)
            line.beyond.append(risk.above_interval)
            tolerance = TOLERANCES[risk.question]
            line.alarms.append(risk.above_interval[0] > tolerance)
            truth = exact[name].above if exact else risk.above
            line.misses.append(risk.most_above <= tolerance < truth and not chance)
            if exact:
                line.exact.append(exact[name])
                line.apart = max(line.apart, abs(risk.share - exact[name].share))
    return lines


def table(n: int, seeds: range, checked: int, only: str = "") -> list[str]:
    out = [
        f"{len(seeds)} draws of {n:,} people"
        + (":" if checked >= len(seeds) else f" (of a search, a tenth of them), brute force on {checked} of them:"),
        "",
        "| release | attack | reported | exact | apart | beyond control | false alarms | misses | coverage |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, make in RELEASES.items():
        if only and only not in name:
            continue
        # A search takes longer than the attacks on what it finds.
        some = seeds if n <= 200 or name not in CHOSEN else seeds[: max(1, len(seeds) // 10)]
        for attack, line in measured(make, n, some, checked, chance=name == SHUFFLED).items():
            harmless = line.rate_above <= line.tolerance
            alarms = f"{100 * np.mean(line.alarms):.1f} %" if harmless else ""
            misses = f"{100 * np.mean(line.misses):.1f} %"
            covered = "" if name in CHOSEN else " / ".join(f"{100 * share:.1f} %" for share in line.coverage())
            apart = "" if line.chance else f"{line.apart:.0e}"
            out.append(
                f"| {name} | {attack} | {np.mean(line.share):.3f} | {line.rate:.3f} | {apart} | "
                f"{line.rate_above:.3f} | {alarms} | {misses} | {covered} |"
            )
            print(out[-1], flush=True)
    return out


def main() -> None:
    """Print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 2000])
    parser.add_argument("--only", default="", help="releases whose name has this")
    parser.add_argument("--write", action="store_true", help="into docs/attacks.md")
    given = parser.parse_args()
    for n in given.sizes:
        # A matrix of 2,000 people and records is slow: there a part of the draws is checked.
        lines = table(n, range(given.seeds), given.seeds if n <= 200 else 4, given.only)
        if given.write:
            page = Path(__file__).resolve().parent.parent / "docs" / "attacks.md"
            before, rest = page.read_text("utf-8").split(START.format(n))
            text = "\n".join(["", *lines, "", ""])
            page.write_text(before + START.format(n) + text + rest[rest.index(END) :], "utf-8")


if __name__ == "__main__":
    main()
