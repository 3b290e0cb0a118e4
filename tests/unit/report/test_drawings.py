"""Charts that a report draws by itself: they show what Altair's show, and stay within their frame."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.report import charts
from shoal.report.drawings import PLOTS, round_steps
from shoal.report.intrusion import within_budget
from shoal.report.lettering import WIDTH
from shoal.report.pictures import Picture, groups_of, pictures
from shoal.report.summary import summary
from shoal.report.svg import EDGE, GAP, LETTER, Block, Plot, Stretch, Symbols, _fitting_labels, plot_svg

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "g", "path", "text", "rect", "line"}
NASTY = ["<script>", "a & b", '"quoted"', "漢" * 30, "x" * 200, "two words that are long", "", "-"]


def policy(algorithm: str) -> dict[str, Any]:
    return {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
            "cost": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": algorithm, "max_suppression": 0.1},
    }


@pytest.fixture(scope="module")
def drawn() -> list[Picture]:
    """Every kind of chart."""
    rng = np.random.default_rng(3)
    people = pa.table({
        "age": [str(x) for x in rng.integers(18, 90, 200)],
        "zip": [f"0213{x}" for x in rng.integers(0, 10, 200)],
        "disease": [NASTY[i] for i in rng.integers(0, len(NASTY), 200)],
        "cost": [str(x) for x in rng.integers(100, 9_000, 200)],
    })  # fmt: skip
    found: list[Picture] = []
    for algorithm, pair in (("optimal", ()), ("optimal", ("age", "zip")), ("mondrian", ())):
        asked = policy(algorithm)
        release = shoal.anonymize(people, asked)
        frontier = shoal.frontier(people, asked, k=[2, 4, 8]) if algorithm == "optimal" else None
        groups = groups_of(within_budget(release))
        found += pictures(release, summary(release, pair), frontier, 1 if frontier else None, groups).values()
    return found


def test_every_kind_of_chart_is_drawn_in_both_ways(drawn: list[Picture]) -> None:
    assert {picture.kind for picture in drawn} == set(PLOTS) == set(charts.CHARTS)


def test_a_drawing_shows_what_altair_shows(drawn: list[Picture]) -> None:
    for picture in drawn:
        plot = PLOTS[picture.kind](*picture.subject)
        spec = charts.CHARTS[picture.kind](*picture.subject).to_dict()
        layers = spec.get("layer", [spec])
        encoded = [layer["encoding"] for layer in layers]
        assert plot.across.title in {of["x"].get("title") for of in encoded}, picture.kind
        assert plot.up.title in {of["y"].get("title") for of in encoded}, picture.kind
        rows = _rows(spec)
        if picture.kind == "frontier":
            rows = [row for row in rows if "release" in row]
        if picture.kind == "attacks":
            assert _marks(plot, Stretch) == len(rows)
            ticks = [mark for mark in plot.marks if isinstance(mark, Symbols) and mark.shape == "tick"]
            assert len(ticks) == sum(row["control"] is not None for row in rows)
        elif picture.kind in ("lattice", "slice", "frontier"):
            assert sum(len(mark.places) for mark in plot.marks if isinstance(mark, Symbols)) == len(rows)
        else:
            assert _marks(plot, Block) == len(rows)
        scales = [of["color"]["scale"] for of in encoded if "color" in of]
        assert [name for name, _, _ in plot.legend] == (scales[0]["domain"] if scales else [])


def _rows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows of a chart's data, those that several layers share once."""
    return [row for rows in spec["datasets"].values() for row in rows]


def _marks(plot: Plot, kind: type) -> int:
    return sum(isinstance(mark, kind) for mark in plot.marks)


def test_lengths_of_bars_are_those_of_the_figures(drawn: list[Picture]) -> None:
    picture = next(each for each in drawn if each.kind == "risk")
    plot = PLOTS["risk"](*picture.subject)
    root = ET.fromstring(plot_svg(plot, "x", "t"))
    wide = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect")]
    shares = [x for of in ("before", "after") for x in (getattr(each, of) for each in picture.subject[0])]
    assert wide == pytest.approx([x / plot.across.high * plot.width for x in shares], abs=0.06)


def test_nothing_lies_outside_the_frame_or_on_the_axis_of_another(drawn: list[Picture]) -> None:
    for picture in drawn:
        text = str(picture.drawn())
        root = ET.fromstring(text)  # which also tells that every text is escaped
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        assert width == WIDTH
        moved = root.find(f"{SVG}g/{SVG}g")
        assert moved is not None
        left, top = map(float, re.findall(r"[\d.]+", moved.attrib["transform"]))
        for rect in moved.iter(f"{SVG}rect"):
            x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            assert x >= -0.1
            assert y >= -0.1
            assert left + x + w <= width - EDGE + 0.2
            assert top + y + h <= height
        for label in moved.findall(f"{SVG}text"):
            x, y = float(label.attrib["x"]), float(label.attrib["y"])
            assert 0 <= left + x <= width
            assert top + y <= height
        assert {tag.tag.removeprefix(SVG) for tag in root.iter()} <= {
            "svg",
            "title",
            "g",
            "path",
            "text",
            "rect",
            "line",
        }
        assert "nan" not in text
        assert "inf" not in re.sub(r">[^<]*<", "><", text)


@given(st.floats(0, 1e6), st.floats(1e-6, 1e6), st.integers(1, 10))
def test_steps_are_round_and_few(low: float, reach: float, most: int) -> None:
    high = low + max(reach, low * 1e-4)  # as the axis of a frontier has it: no chart shows less of a difference
    steps = round_steps(low, high, most)
    assert len(steps) <= most + 1
    assert all(low - 1e-6 * high <= x <= high * (1 + 1e-6) for x in steps)
    if len(steps) > 1:
        size = steps[1] - steps[0]
        first = size / 10 ** math.floor(math.log10(size) + 1e-9)
        assert round(first, 6) in (1, 2, 5, 10)
        assert all(math.isclose(b - a, size, rel_tol=1e-3) for a, b in pairwise(steps))


@given(st.lists(st.tuples(st.floats(0, 200), st.text("abc漢", max_size=9)), max_size=9), st.floats(70, 200))
def test_labels_that_are_shown_do_not_overlap(labels: list[tuple[float, str]], width: float) -> None:
    labels = sorted((min(x, width), text) for x, text in labels)
    shown = _fitting_labels(labels, width)
    assert bool(shown) == bool(labels)
    edges = []
    for x, text, anchor in shown:
        wide = LETTER * sum(2 if letter == "漢" else 1 for letter in text)
        begin = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        edges.append((begin, begin + wide))
    assert all(a[1] + GAP <= b[0] + 1e-6 for a, b in pairwise(edges))
