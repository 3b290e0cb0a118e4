"""Draws what every algorithm does to the same thirty people: ``python docs/draw.py`` writes docs/pictures/.

Two numbers a person, years of age and minutes from the city, and 3-anonymity. A dot is a person, a box a class: what
is released instead of the dots in it. A cross is a person who is suppressed. Boxes of one column stripe the picture.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal
from shoal.engines.local import LocalEngine
from shoal.search import PARTING, SEARCHES, Problem

PICTURES = Path(__file__).parent / "pictures"
SIDE, MARGIN = 240, 26
AGE, AWAY = (20, 70), (0, 60)
ALGORITHMS = [name for name in SEARCHES if name not in ("exhaustive", "mingen")]  # which find what optimal finds


def people() -> pa.Table:
    """Three clouds and a few who stand alone; drawn, with a seed, so that nobody is in it."""
    draw = random.Random(7)
    points = [(draw.gauss(30, 3), draw.gauss(12, 4)) for _ in range(11)]
    points += [(draw.gauss(45, 4), draw.gauss(38, 5)) for _ in range(9)]
    points += [(draw.gauss(60, 3), draw.gauss(15, 5)) for _ in range(7)]
    points += [(24, 52), (66, 50), (48, 6)]
    return pa.table({
        "age": [str(min(68, max(20, 4 * round(a / 4)))) for a, _ in points],
        "away": [str(min(55, max(0, 5 * round(b / 5)))) for _, b in points],
    })  # fmt: skip


def policy(algorithm: str) -> shoal.Policy:
    """3-anonymity; up to a tenth of the records may go, and more where nothing else is allowed to happen."""
    share = 0.9 if algorithm == "suppress_records" else 0.1
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "away": {"role": "quasi", "hierarchy": {"intervals": [5, 15, 30]}},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": algorithm, "max_suppression": share},
    })  # fmt: skip


def drawn(algorithm: str) -> str:
    """One picture, as SVG."""
    recipe = policy(algorithm)
    table = LocalEngine.of(people()).count(recipe, apart=algorithm in PARTING).table
    recoding = SEARCHES[algorithm](Problem.of(table, recipe))
    parts = recoding.parts(table)
    numbers = [np.array([float(leaf or 0) for leaf in h.leaves]) for h in table.hierarchies]
    body = []
    for codes in np.unique(parts.codes[~parts.suppressed], axis=0):
        ends = [
            (numbers[j][value.covers[code]].min(), numbers[j][value.covers[code]].max())
            for j, (value, code) in enumerate(zip(recoding.released, codes, strict=True))
        ]
        body.append(_box(*ends))
    for row, suppressed in zip(parts.row, parts.suppressed, strict=True):
        at = _position(*(numbers[j][table.codes[row, j]] for j in (0, 1)))
        body.append(_cross(*at) if suppressed else f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3" class="who"/>')
    return _picture(algorithm, body)


def _position(age: float, away: float) -> tuple[float, float]:
    x = MARGIN + (age - AGE[0]) / (AGE[1] - AGE[0]) * (SIDE - 2 * MARGIN)
    y = SIDE - MARGIN - (away - AWAY[0]) / (AWAY[1] - AWAY[0]) * (SIDE - 2 * MARGIN)
    return x, y


def _box(ages: tuple[float, float], aways: tuple[float, float]) -> str:
    (left, bottom), (right, top) = _position(ages[0], aways[0]), _position(ages[1], aways[1])
    shape = f'x="{left - 4:.1f}" y="{top - 4:.1f}" width="{right - left + 8:.1f}" height="{bottom - top + 8:.1f}"'
    return f'<rect {shape} rx="4" class="class"/>'


def _cross(x: float, y: float) -> str:
    return f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" class="gone"/>'


def _picture(name: str, body: list[str]) -> str:
    style = (
        ".class{fill:#3b82c4;fill-opacity:.13;stroke:#3b82c4}.who{fill:#c2410c}"
        ".gone{stroke:#888;stroke-width:1.6;fill:none}text{font:11px sans-serif;fill:#777}"
    )
    words = f'<text x="{MARGIN}" y="{SIDE - 6}">age</text><text x="4" y="{MARGIN - 8}">minutes away</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" role="img" '
        f'width="{SIDE}" height="{SIDE}">'
        f"<title>{name}: thirty people and the classes they are released in</title><style>{style}</style>"
        f"{words}{''.join(body)}</svg>\n"
    )


def main() -> None:
    """Write all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name in ALGORITHMS:
        (PICTURES / f"{name}.svg").write_text(drawn(name), encoding="utf-8")


if __name__ == "__main__":
    main()
