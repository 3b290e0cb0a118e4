"""Whether a released text lies within a value that a forbidden result names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.hierarchies.builders import Flat, Mask, Tree
from shoal.hierarchies.containment import INSIDE, OUTSIDE, UNDECIDED, UNREAD, placing
from shoal.hierarchies.dates import Dates
from shoal.hierarchies.intervals import Intervals

TREE = Tree(tree={"*": {"cancer": ["lung", "skin"], "viral": ["flu", "hiv"]}})
AGES = Intervals.model_validate({"intervals": [10]})
DAYS = Dates.model_validate({"dates": ["month", "year"]})


@pytest.mark.parametrize(
    ("spec", "value", "texts"),
    [
        (AGES, "34", {"34": INSIDE, "34.0": INSIDE, "30-39": UNDECIDED, "40-49": OUTSIDE, "35": OUTSIDE}),
        (AGES, "30-39", {"34": INSIDE, "30-34": INSIDE, "30-39": INSIDE, "25-34": UNDECIDED, "40-49": OUTSIDE}),
        (
            AGES,
            ">=80",
            {"80": INSIDE, "85-89": INSIDE, ">=80": INSIDE, "79": OUTSIDE, "<80": OUTSIDE, ">=70": UNDECIDED},
        ),
        (AGES, "[0.5, 1)", {"0.5": INSIDE, "0.75": INSIDE, "1": OUTSIDE, "[0.5, 1]": UNDECIDED, "[1, 2)": OUTSIDE}),
        (Mask(mask="right"), "35138", {"35138": INSIDE, "3513*": UNDECIDED, "352**": OUTSIDE, "*****": UNDECIDED}),
        (Mask(mask="right"), "351**", {"35138": INSIDE, "3513*": INSIDE, "351**": INSIDE, "35***": UNDECIDED}),
        (Mask(mask="right"), "35130", {"3513*": UNDECIDED, "35130": INSIDE}),  # and no other value of 3513*
        (Mask(mask="right"), "3510*", {"351**": UNDECIDED, "35100": INSIDE, "3510*": INSIDE}),
        (None, "{350, 351}", {"35*": UNDECIDED, "350": INSIDE}),
        (TREE, "viral", {"flu": INSIDE, "viral": INSIDE, "cancer": OUTSIDE, "lung": OUTSIDE, "*": UNDECIDED}),
        (TREE, "flu", {"flu": INSIDE, "viral": UNDECIDED, "cancer": OUTSIDE, "{flu, lung}": UNDECIDED}),
        (Flat(), "a", {"a": INSIDE, "b": OUTSIDE, "*": UNDECIDED, "{a, b}": UNDECIDED, "{b, c}": OUTSIDE}),
        (None, "{a, b}", {"a": INSIDE, "b": INSIDE, "c": OUTSIDE, "{a, b}": INSIDE, "{a, c}": UNDECIDED}),
        (DAYS, "1990-05-03", {"1990-05-03": INSIDE, "1990-05": UNDECIDED, "1990": UNDECIDED, "1991": OUTSIDE}),
        (DAYS, "1990", {"1990-05-03": INSIDE, "1990-05": INSIDE, "1990": INSIDE, "1989-05": OUTSIDE}),
    ],
)
def test_a_text_is_within_outside_or_undecided(spec, value, texts):
    assert dict(zip(texts, placing("c", list(texts), value, spec).tolist(), strict=True)) == texts


def test_what_cannot_be_read_is_said_to_be_unread():
    assert placing("c", ["flu", "measles"], "viral", TREE).tolist() == [INSIDE, UNREAD]
    assert placing("c", ["flu", "lung"], "measles", TREE).tolist() == [UNREAD, UNREAD]  # the value itself


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6), st.data())
def test_ranges_are_placed_as_their_numbers_are(drawn, data):
    spans = [(min(pair), max(pair)) for pair in drawn]
    value = data.draw(st.sampled_from([*spans, (3, 7)]))
    inside = set(range(value[0], value[1] + 1))
    texts = {f"[{a}, {b}]": set(range(a, b + 1)) for a, b in spans}
    for (text, own), found in zip(
        texts.items(), placing("c", list(texts), f"[{value[0]}, {value[1]}]", AGES).tolist(), strict=True
    ):
        # Closed ranges of whole numbers that share a number overlap, and none lies between two neighbours.
        assert found == (OUTSIDE if not own & inside else INSIDE if own <= inside else UNDECIDED), text
