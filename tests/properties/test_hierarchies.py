"""The laws of hierarchies: C1, C2, labels that are true, losses that only grow."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from shoal.hierarchies.builders import Spec, build
from shoal.hierarchies.dates import UNITS
from shoal.hierarchies.hierarchy import Hierarchy

SPEC: TypeAdapter[Any] = TypeAdapter(Spec)


def made(spec: Any, values: list[str], nulls: bool, uncovered: Any = "suppress") -> Hierarchy:
    given = SPEC.validate_python(spec)
    return build("c", given, values, nulls=nulls, uncovered=uncovered, folder=Path())


def require_laws(hierarchy: Hierarchy) -> None:
    table, n = hierarchy.table, hierarchy.n_levels
    assert len(set(table[-1].tolist())) == 1
    for lower in range(n):
        codes = table[lower]
        assert sorted(set(codes.tolist())) == list(range(hierarchy.cardinality(lower)))
        assert len(set(hierarchy.labels[lower])) == hierarchy.cardinality(lower)
        for upper in range(lower, n):
            step = hierarchy.step(lower, upper)
            assert (step[codes] == table[upper]).all()
            for middle in range(lower, upper + 1):
                assert (hierarchy.step(middle, upper)[hierarchy.step(lower, middle)] == step).all()
    losses = np.array([hierarchy.shares[level][table[level]] for level in range(n)])
    sizes = np.array([hierarchy.sizes[level][table[level]] for level in range(n)])
    assert ((losses >= 0) & (losses <= 1)).all()
    assert (np.diff(losses, axis=0) >= 0).all()
    assert (np.diff(sizes, axis=0) >= 0).all()
    assert (losses[-1] == (len(hierarchy.leaves) > 1 or hierarchy.uncovered is not None)).all()
    assert (sizes[-1] == hierarchy.domain).all()


def holds(label: str, x: Decimal) -> bool:
    """Whether an interval's label, read as anyone would read it, holds the number."""
    number = r"(-?\d+(?:\.\d+)?)"
    if match := re.fullmatch(rf">={number}", label):
        return x >= Decimal(match[1])
    if match := re.fullmatch(rf"<{number}", label):
        return x < Decimal(match[1])
    if match := re.fullmatch(rf"\[{number}, {number}\)", label):
        return Decimal(match[1]) <= x < Decimal(match[2])
    if match := re.fullmatch(rf"\[{number}, {number}\]", label) or re.fullmatch(r"(\d+)-(\d+)", label):
        return Decimal(match[1]) <= x <= Decimal(match[2])
    return label == "*" or x == Decimal(label)


@st.composite
def decimals(draw: st.DrawFn, places: int) -> Decimal:
    return Decimal(draw(st.integers(-500, 500))).scaleb(-draw(st.integers(0, places)))


@st.composite
def intervals(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    places = draw(st.integers(0, 2))
    width = Decimal(draw(st.integers(1, 30))).scaleb(-draw(st.integers(0, places)))
    widths = [width]
    for factor in draw(st.lists(st.integers(2, 5), max_size=3)):
        widths.append(widths[-1] * factor)
    spec: dict[str, Any] = {"intervals": widths, "origin": draw(decimals(places))}
    coded = sorted(draw(st.sets(decimals(places), max_size=2)))
    if len(coded) == 2:
        spec |= {"bottom": coded[0], "top": coded[1]}
    elif coded:
        spec |= {draw(st.sampled_from(["bottom", "top"])): coded[0]}
    # Both edges of some interval are among the values.
    edge = spec["origin"] + draw(st.integers(-20, 20)) * width
    numbers = [*draw(st.lists(decimals(places), min_size=1, max_size=20)), edge, edge + width]
    return spec, sorted({str(x) for x in numbers})


@given(intervals(), st.booleans())
def test_every_interval_holds_its_values(drawn, nulls):
    spec, values = drawn
    hierarchy = made(spec, values, nulls, "error")
    require_laws(hierarchy)
    for leaf, text in enumerate(hierarchy.leaves):
        for level in range(hierarchy.n_levels):
            label = hierarchy.label(level, hierarchy.table[level, leaf])
            if text is None:
                assert label == ("*" if level == hierarchy.height else None)
            else:
                assert label is not None
                assert holds(label, Decimal(text))


@given(intervals())
def test_labels_of_one_level_do_not_overlap(drawn):
    spec, values = drawn
    hierarchy = made(spec, values, nulls=False)
    for level in range(1, hierarchy.n_levels):
        for text in values:
            assert sum(holds(str(label), Decimal(text)) for label in hierarchy.labels[level]) == 1


@given(intervals())
def test_nothing_beyond_top_and_bottom_is_told_apart(drawn):
    spec, values = drawn
    hierarchy = made(spec, values, nulls=False)
    for beyond in (
        [v for v in values if "top" in spec and Decimal(v) >= spec["top"]],
        [v for v in values if "bottom" in spec and Decimal(v) < spec["bottom"]],
    ):
        leaves = hierarchy.encode(beyond)
        assert all(len(set(row[leaves].tolist())) <= 1 for row in hierarchy.table)


@given(st.lists(st.text(max_size=6), max_size=12), st.sampled_from(["left", "right"]), st.booleans())
def test_masks_are_hierarchies_and_hide_one_character_more_on_each_level(values, side, nulls):
    assume(values or nulls)
    hierarchy = made({"mask": side}, values, nulls, "error")
    require_laws(hierarchy)
    for text in values:
        leaf = hierarchy.encode([text])[0]
        for level in range(1, hierarchy.n_levels):
            label = hierarchy.label(level, hierarchy.table[level, leaf])
            if level == hierarchy.height:
                assert label == "*"
            elif level >= len(text):
                assert label == "*" * max(1, len(text))
            else:
                hidden, shown = (label[-level:], label[:-level]) if side == "right" else (label[:level], label[level:])
                assert hidden == "*" * level
                assert shown == (text[:-level] if side == "right" else text[level:])


@given(
    st.lists(st.text("0123*-", max_size=6), min_size=1, max_size=8),
    st.lists(st.text("0123*-", max_size=9), max_size=8),
    st.sampled_from(["left", "right"]),
)
def test_what_a_mask_makes_of_a_value_does_not_depend_on_the_others(values, others, side):
    alone, beside = (made({"mask": side}, texts, False, "error") for texts in (values, values + others))
    require_laws(beside)
    for text in values:
        for level in range(alone.height):
            labels = [of.label(level, of.table[level, of.encode([text])[0]]) for of in (alone, beside)]
            assert labels[0] == labels[1]
    assert alone.top == beside.top


@given(st.lists(st.integers(-50, 50), min_size=1), st.lists(st.integers(-500, 500)), st.integers(1, 12))
def test_how_an_interval_is_written_does_not_depend_on_the_others(values, others, width):
    spec = {"intervals": [width, 3 * width]}
    alone, beside = (made(spec, [str(x) for x in xs], False, "error") for xs in (values, values + others))
    for text in map(str, values):
        for level in range(alone.n_levels):
            labels = [of.label(level, of.table[level, of.encode([text])[0]]) for of in (alone, beside)]
            assert labels[0] == labels[1]


@given(
    st.lists(st.dates(), min_size=1, max_size=20),
    st.sets(st.sampled_from(list(UNITS)), min_size=1),
    st.booleans(),
)
def test_calendar_units_nest(days, units, nulls):
    spec = {"dates": [unit for unit in UNITS if unit in units]}
    hierarchy = made(spec, [day.isoformat() for day in days], nulls, "error")
    require_laws(hierarchy)
    texts = [text for text in hierarchy.leaves if text is not None]
    assert texts == sorted(texts)


@given(st.dates(), st.integers(0, 100))
def test_a_two_digit_year_lies_in_the_century_of_the_pivot(day, pivot):
    assume((day.month, day.day) != (2, 29))
    text = f"{day.year % 100:02}/{day.month}/{day.day}"
    hierarchy = made({"dates": ["day"], "format": "%y/%m/%d", "pivot": pivot}, [text], False, "error")
    read = date.fromisoformat(str(hierarchy.labels[1][0]))
    assert (read.year % 100, read.month, read.day) == (day.year % 100, day.month, day.day)
    assert 1900 + pivot <= read.year < 2000 + pivot


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Any shape with distinct leaves and group names."""
    shape = draw(st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=15))
    names = iter(range(1000))

    def named(node: Any) -> Any:
        return f"leaf {next(names)}" if node is None else {f"group {next(names)}": [named(below) for below in node]}

    return {"*": [named(shape)]}


@given(trees(), st.booleans(), st.lists(st.text(max_size=3), max_size=3))
def test_trees_of_any_shape_are_hierarchies(tree, nulls, strangers):
    hierarchy = made({"tree": tree}, strangers, nulls)
    require_laws(hierarchy)
    assert (hierarchy.uncovered is None) == (not strangers)


@given(st.lists(st.text(alphabet="0123456789.-+eE /x*é", max_size=8), min_size=1), st.booleans())
def test_any_text_finds_a_place_when_strangers_are_suppressed(values, nulls):
    for spec in (
        {"intervals": [5, 10]},
        {"mask": "left"},
        {"dates": ["month"]},
        {"flat": True},
        {"tree": {"*": ["x"]}},
    ):
        hierarchy = made(spec, values, nulls)
        require_laws(hierarchy)
        assert (hierarchy.encode(values) >= 0).all()
