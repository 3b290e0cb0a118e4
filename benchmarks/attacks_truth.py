"""Do attacks tell the truth?

Releases whose success rates are known, by construction or by brute force (attacks_releases.py), are drawn again and
again and attacked. For each kind of release and each attack: the rate that was reported and the exact one, both
averaged over the draws; the largest difference between the two on one draw; how often a harmless release was called
possible, how often one that falls was called tolerated; and how often the 95 % interval held the rate of all draws, of
the named intruder. ``--write`` puts all rows into docs/measured/attacks.csv and their extremes into docs/attacks.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from attacks_releases import BY_CHANCE, CHOSEN, ORDER, RELEASES, UPPER, Draw, Random
from exact_attacks import Figure

from shoal.attacks.risk import TOLERANCES

ATTACKS = (
    "singling out", "identity linking", ORDER, "complementary release", "homogeneity", "exclusion", "relative",
    "external knowledge", "skewness", "similarity", "inference", "minimality",
)  # fmt: skip
DOCS = Path(__file__).resolve().parent.parent / "docs"
ROWS = DOCS / "measured" / "attacks.csv"
COVERAGE = ("coverage %", "coverage beyond control %")
START, END = "<!-- attacks_truth.py, {} people -->\n", "<!-- end -->\n"

Row = dict[str, str]


# ── Figures ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Line:
    """One attack on one kind of release."""

    share: list[float] = field(default_factory=list)
    reported: list[Figure] = field(default_factory=list)
    ends: list[tuple[float, float]] = field(default_factory=list)
    beyond: list[tuple[float, float]] = field(default_factory=list)
    alarms: list[bool] = field(default_factory=list)  # whether it was called possible
    misses: list[bool] = field(default_factory=list)  # whether it was called tolerated, and was not
    exact: list[Figure] = field(default_factory=list)
    named: list[str] = field(default_factory=list)  # the intruder who did best
    by: list[dict[str, float]] = field(default_factory=list)  # what each of them reached
    apart: float = 0.0
    chance: bool = False
    question: str = ""
    of_draw: bool = False  # whether the figure is about that one release, and not about people like those in it

    @property
    def rate(self) -> float:
        """Exact, averaged over the draws; reported where these were shown to be the same."""
        shares = [figure.share for figure in self.exact] if len(self.exact) == len(self.share) else self.share
        return float(np.mean(shares))

    @property
    def rate_above(self) -> float:
        if self.chance:
            return 0.0
        figures = self.exact if len(self.exact) == len(self.share) else self.reported
        share, control = (
            float(np.mean([getattr(f, field_name) for f in figures])) for field_name in ("share", "control")
        )
        return Figure(share, control).above

    @property
    def tolerance(self) -> float:
        return TOLERANCES[self.question]  # type: ignore[index]

    def coverage(self) -> tuple[float, float]:
        """How often the intervals hold the rate of all draws, and what it leaves beyond the control."""
        if self.of_draw:
            shares, beyond = [figure.share for figure in self.exact], [figure.above for figure in self.exact]
            return _coverage(shares, self.ends), _coverage(beyond, self.beyond)
        shares = [np.mean([figure[name] for figure in self.by if name in figure]) for name in self.named]
        return _coverage(shares, self.ends), _coverage([self.rate_above] * len(self.beyond), self.beyond)


def _coverage(rates: Sequence[float], ends: Sequence[tuple[float, float]]) -> float:
    return float(np.mean([low - 1e-9 <= x <= high + 1e-9 for x, (low, high) in zip(rates, ends, strict=True)]))


def measured(
    make: Callable[[Random, int], Draw], n: int, seeds: range, checked: int, *, chance: bool
) -> dict[str, Line]:
    """Attack as many draws as there are seeds, and lay the first ones beside brute force.

    ``chance``: whatever works, works by chance.
    """
    lines: dict[str, Line] = {}
    for i, seed in enumerate(seeds):
        draw = make(np.random.default_rng([seed, n]), n)
        attacks = draw.attacked()
        exact = draw.by_brute_force() if i < checked or draw.exact else {}
        for name in draw.attacks or (exact if exact else tuple(lines) if lines else ATTACKS):
            if not any(risk.name == name for risk in attacks) or (draw.exact and name not in draw.exact):
                continue
            risk, line = attacks.named(name), lines.setdefault(name, Line(chance=chance, of_draw=name == ORDER))
            line.question = risk.question
            line.share.append(risk.share)
            line.reported.append(Figure(risk.share, 0.0 if risk.control is None else risk.control.share))
            line.ends.append(risk.interval)
            line.named.append(risk.intruder)
            line.by.append({intruder: result.successes / risk.attempts for intruder, result in risk.intruders.items()})
            line.by[-1].setdefault(risk.intruder, risk.share)
            line.beyond.append(risk.above_interval)
            tolerance = TOLERANCES[risk.question]
            line.alarms.append(risk.above_interval[0] > tolerance)
            truth = exact[name].above if exact else risk.above
            line.misses.append(risk.most_above <= tolerance < truth and not chance)
            if exact:
                line.exact.append(exact[name])
                line.apart = max(line.apart, abs(risk.share - exact[name].share))
    return lines


def measured_rows(n: int, seeds: range, checked: int, only: str = "") -> list[Row]:
    """One row for each kind of release and each attack on it, printed as soon as it is measured."""
    rows = []
    for name, make in RELEASES.items():
        if only and only not in name:
            continue
        # A search takes longer than the attacks on its result.
        used_seeds = seeds if n <= 200 or name not in CHOSEN else seeds[: max(1, len(seeds) // 10)]
        for attack, line in measured(make, n, used_seeds, checked, chance=name in BY_CHANCE).items():
            harmless = line.rate_above <= line.tolerance
            covered = () if name in CHOSEN | UPPER else line.coverage()
            row: Row = {
                "people": str(n),
                "draws": str(len(used_seeds)),
                "brute force": str(min(checked, len(used_seeds))),
                "release": name,
                "attack": attack,
                "reported": f"{np.mean(line.share):.3f}",
                "exact": f"{line.rate:.3f}",
                "apart": "" if line.chance else f"{line.apart:.0e}",
                "beyond control": f"{line.rate_above:.3f}",
                "false alarms %": f"{100 * np.mean(line.alarms):.1f}" if harmless else "",
                "misses %": f"{100 * np.mean(line.misses):.1f}",
                **dict(zip(COVERAGE, [f"{100 * share:.1f}" for share in covered] or ["", ""], strict=True)),
            }
            rows.append(row)
            print(*row.values(), sep=", ", flush=True)
    return rows


def summary(rows: Sequence[Row]) -> list[str]:
    """The extremes over all kinds of releases, a line for each attack."""
    lines = [
        "| attack | kinds of release | apart | false alarms | misses | coverage | coverage beyond control |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for attack in dict.fromkeys(row["attack"] for row in rows):
        of_attack = [row for row in rows if row["attack"] == attack]
        differences, alarms, misses = (_numbers(of_attack, key) for key in ("apart", "false alarms %", "misses %"))
        cells = [
            attack,
            str(len(of_attack)),
            f"{max(differences):.0e}" if max(differences, default=0.0) else "0",
            f"{max(alarms):.1f} %" if alarms else "",
            f"{max(misses):.1f} %",
            *(f"{min(shares):.1f} %" if (shares := _numbers(of_attack, key)) else "" for key in COVERAGE),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _numbers(rows: Sequence[Row], key: str) -> list[float]:
    return [float(row[key]) for row in rows if row[key]]


def write(n: int, rows: Sequence[Row]) -> None:
    """Put the rows of one size into the file of all rows, and their extremes into the page."""
    old = list(csv.DictReader(ROWS.open(encoding="utf-8"))) if ROWS.exists() else []
    everything = [row for row in old if int(row["people"]) < n] + list(rows)
    everything += [row for row in old if int(row["people"]) > n]
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, everything[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything)
    draws = sorted({int(row["draws"]) for row in rows})
    searched = "" if len(draws) == 1 else f", {draws[0]} of each search"
    checked = max(int(row["brute force"]) for row in rows)
    head = f"{draws[-1]} draws of {n:,} people{searched}; brute force on {checked}:"
    page = DOCS / "attacks.md"
    before, rest = page.read_text("utf-8").split(START.format(n))
    text = "\n".join(["", head, "", *summary(rows), "", ""])
    page.write_text(before + START.format(n) + text + rest[rest.index(END) :], "utf-8")


def main() -> None:
    """Print the rows, and write them on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 2000])
    parser.add_argument("--only", default="", help="releases whose name has this")
    parser.add_argument("--write", action="store_true", help="into docs/attacks.md and docs/measured/attacks.csv")
    arguments = parser.parse_args()
    for n in arguments.sizes:
        # A matrix of 2,000 people and records is slow: there a part of the draws is checked.
        checked = arguments.seeds if n <= 200 else 4
        rows = measured_rows(n, range(arguments.seeds), checked, arguments.only)
        if arguments.write:
            write(n, rows)


if __name__ == "__main__":
    main()
