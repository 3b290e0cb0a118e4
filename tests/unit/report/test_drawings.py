"""Charts: they show the figures, stay within their frame, and their marks can be named, followed and saved."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import OutputError
from shoal.report.drawings import frontier_plot, lattice_plot, risk_plot, round_steps
from shoal.report.intrusion import within_budget
from shoal.report.lettering import WIDTH
from shoal.report.pictures import groups_of, pictures
from shoal.report.summary import LatticeNode, summary
from shoal.report.svg import EDGE, GAP, LETTER, Chart, Symbols, _fitting, plot_svg

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "g", "path", "text", "rect", "line"}
AGES = {
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}},
    "require": [{"model": "k-anonymity", "k": 3}],
}
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
def drawn() -> list[Chart]:
    """Every kind of chart."""
    rng = np.random.default_rng(3)
    people = pa.table({
        "age": [str(x) for x in rng.integers(18, 90, 200)],
        "zip": [f"0213{x}" for x in rng.integers(0, 10, 200)],
        "disease": [NASTY[i] for i in rng.integers(0, len(NASTY), 200)],
        "cost": [str(x) for x in rng.integers(100, 9_000, 200)],
    })  # fmt: skip
    found: list[Chart] = []
    for algorithm, pair in (("optimal", ()), ("optimal", ("age", "zip")), ("mondrian", ())):
        asked = policy(algorithm)
        release = shoal.anonymize(people, asked)
        frontier = shoal.frontier(people, asked, k=[2, 4, 8]) if algorithm == "optimal" else None
        groups = groups_of(within_budget(release))
        found += pictures(release, summary(release, pair), frontier, 1 if frontier else None, groups).values()
    return found


def test_every_kind_of_chart_is_drawn(drawn: list[Chart]) -> None:
    names = {re.sub(r"[\d-]+$", "", chart.name) for chart in drawn}
    kinds = {"risk", "size", "loss", "lattice", "slice", "partition", "attack", "frontier"}
    assert names == {"sensitive", *(f"{kind}-chart" for kind in kinds)}


def test_a_point_with_a_link_can_be_reached_by_pointer_keyboard_and_screen_reader() -> None:
    frontier = shoal.frontier(pa.table({"age": [str(20 + i % 30) for i in range(90)]}), AGES, k=[2, 3, 40, 99])
    plot = frontier_plot(frontier, 1, link="#point-")
    root = ET.fromstring(plot_svg(plot, "f", "<title>"))
    assert root.attrib["role"] == "group"  # one picture would hide its links
    anchors = {a.attrib["href"]: a for a in root.iter(f"{SVG}a")}
    assert set(anchors) == {f"#point-{i}" for i, point in enumerate(frontier) if point.feasible}
    assert len(anchors) == 3
    for href, anchor in anchors.items():
        point = frontier.points[int(href.removeprefix("#point-"))]
        assert anchor.attrib["aria-label"].startswith(f"k = {point.asked['k']:g}: risk ")
        assert anchor.findtext(f"{SVG}title") == anchor.attrib["aria-label"]
        assert "tabindex" not in anchor.attrib
        assert anchor.find(f"{SVG}circle[@pointer-events='all']") is not None
    beside = ET.fromstring(plot_svg(plot, "f", "t", beside_table=True))
    assert beside.attrib["aria-hidden"] == "true"
    assert {a.attrib["tabindex"] for a in beside.iter(f"{SVG}a")} == {"-1"}


def test_names_and_links_are_escaped() -> None:
    plot = lattice_plot([LatticeNode(0.0, 0, "safe"), LatticeNode(0.0, 1, "chosen")])
    mark = Symbols("ring", 50, "accent", ((0.0, 0.0),), ('<b>"&',), ('#"><script>',))
    root = ET.fromstring(plot_svg(replace(plot, marks=(mark,)), "x", "t"))
    (anchor,) = root.iter(f"{SVG}a")
    assert anchor.attrib["href"] == '#"><script>'
    assert anchor.attrib["aria-label"] == anchor.findtext(f"{SVG}title") == '<b>"&'


def test_a_chart_is_saved_as_svg_that_stands_alone(drawn: list[Chart], tmp_path: Path) -> None:
    chart, path = drawn[0], tmp_path / "chart.svg"
    chart.save(path)
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    assert root.findtext(f"{SVG}title") == chart.title
    assert root.findtext(f"{SVG}desc") == chart.description
    ids = {part.attrib["id"] for part in root.iter() if "id" in part.attrib}
    assert {root.attrib["aria-labelledby"], root.attrib["aria-describedby"]} <= ids
    assert "http" not in path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    with pytest.raises(OutputError, match="already exists"):
        chart.save(path)
    chart.save(path, force=True)
    with pytest.raises(OutputError, match=r"only be saved as \.svg"):
        chart.save(tmp_path / "chart.png")


def test_lengths_of_bars_are_those_of_the_figures(drawn: list[Chart]) -> None:
    release = shoal.anonymize(pa.table({"age": [str(20 + i % 30) for i in range(90)]}), AGES)
    bins = summary(release).bins
    plot = risk_plot(bins)
    root = ET.fromstring(plot_svg(plot, "x", "t"))
    wide = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect")]
    shares = [x for of in ("before", "after") for x in (getattr(each, of) for each in bins)]
    assert wide == pytest.approx([x / plot.across.high * plot.width for x in shares], abs=0.06)


def test_nothing_lies_outside_the_frame_or_on_the_axis_of_another(drawn: list[Chart]) -> None:
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
        assert {tag.tag.removeprefix(SVG) for tag in root.iter()} <= TAGS
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
    shown = _fitting(labels, width)
    assert bool(shown) == bool(labels)
    edges = []
    for x, text, anchor in shown:
        wide = LETTER * sum(2 if letter == "漢" else 1 for letter in text)
        begin = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        edges.append((begin, begin + wide))
    assert all(a[1] + GAP <= b[0] + 1e-6 for a, b in pairwise(edges))
