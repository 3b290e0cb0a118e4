"""Every released cell reads back as something that its original could be, whoever wrote it."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import assume, given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.errors import HierarchyError
from shoal.hierarchies import builders
from shoal.hierarchies.reader import LeavesBehind, Reader
from shoal.tables.values import Vocabulary
from shoal.utility.reading import Pair

ALGORITHMS = ["optimal", "mondrian", "mondrian_relaxed", "k_optimize", "top_down", "forest_generalize", "mdav"]
TREE = {"tree": {"any": {"a, b": ["a", "b"], "{c}": ["c, d", 'e"']}}}
COLUMNS = {
    "age": ([str(n) for n in range(15, 95, 4)], {"intervals": [5, 20], "bottom": 18, "top": 85}),
    "dose": (["-2.5", "-1", "0", "0.5", "1.25", "3", "1e1"], {"intervals": [1, 5]}),
    "zip": (["35138", "35142", "351", "9", "40000"], {"mask": "right"}),
    "day": (["2001-02-03", "2001-02-28", "2001-03-01", "2004-12-31"], {"dates": ["month", "year"]}),
    "kind": (["a", "b", "c, d", 'e"'], TREE),
    "often": (["never", "rarely", "sometimes", "often", "always"], {"ordered": "frequency"}),
    "grade": (["x, y", "b", "{c", "a"], {"ordered": ["b", "{c", "x, y", "a"]}),
    "hour": (["9:05", "09:40", "11:59 pm", "14:00", "14:20:30"], {"times": ["quarter-hour", "hour"]}),
    "land": (["AT", "FR", "US", "Europe", "?"], {"codes": "country"}),
    "dx": (["E11.9", "E11", "I10", "C50.1", "none"], {"codes": "icd-10"}),
}


@examples(40)
@given(
    st.sampled_from(ALGORITHMS),
    st.sampled_from(["hierarchy", "range", "set"]),
    st.sets(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_a_cell_reads_back_as_what_its_original_is_among(algorithm, cells, names, nulls, seed):
    draw = np.random.default_rng(seed)
    n = 24
    frame = pd.DataFrame({name: draw.choice(COLUMNS[name][0], n) for name in sorted(names)}, dtype="str")
    if nulls:
        frame.loc[0, min(names)] = None
    policy = shoal.Policy.of({
        "columns": {
            **{name: {"role": "quasi", "hierarchy": COLUMNS[name][1], "cells": cells} for name in sorted(names)},
            "serial": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": algorithm, "time_budget": 600},
    })  # fmt: skip
    release = shoal.anonymize(frame.assign(serial=[f"{i:02}" for i in range(n)]), policy)
    place = release.table["serial"].astype(int).to_numpy()
    pair = Pair.from_tables(frame, release.table, policy)
    assert pair.unknown == {}
    for column in pair.columns:
        likely = column.masses[column.released].toarray()
        assert (likely[np.arange(len(place)), column.original[place]] > 0).all(), column.name


# ── Labels that shoal writes, read back ─────────────────────────────────────────────────────────────────────

WHOLE = st.sets(st.integers(-60, 120), min_size=2, max_size=25).map(lambda found: [str(n) for n in sorted(found)])
DECIMALS = st.sets(st.integers(-400, 900), min_size=2, max_size=25).map(
    lambda found: [f"{n / 100:g}" for n in sorted(found)]
)
# With one letter hidden, a code of one letter would be *, which is the top.
CODES = st.sets(st.text("0123456789AB", min_size=2, max_size=5), min_size=2, max_size=25).map(sorted)
DAYS = st.sets(st.dates(dt.date(1999, 1, 1), dt.date(2012, 12, 31)), min_size=2, max_size=25).map(
    lambda found: [day.isoformat() for day in sorted(found)]
)
WORDS = st.sets(st.text("ab ,{}\"'|/_-*", min_size=1, max_size=4).filter(lambda t: t.strip("*") != ""), min_size=4)
BINS = st.sampled_from([
    {"intervals": [5, 10, 50]},
    {"intervals": [10, 20], "origin": 3},
    {"intervals": [5, 20], "bottom": -20, "top": 85},
    {"intervals": [0.5, 2]},
    {"intervals": [0.25, 1, 5], "bottom": -1, "top": 7.5},
    {"intervals": [50, 100], "log_from": 1},
    {"intervals": [10], "log_from": 0.02, "bottom": 0},
    {"boundaries": [[-10, 0, 5, 18, 65], [0, 18]]},
    {"boundaries": [0.5, 2.25, 7], "top": 8},
])  # fmt: skip


def a_tree(words):
    words = sorted(words)
    at = len(words) // 2
    return words, {"tree": {"everybody": {"one half": words[:at], "the other": words[at:]}}}


COLUMN = st.one_of(
    st.tuples(st.one_of(WHOLE, DECIMALS), BINS),
    st.tuples(CODES, st.sampled_from([{"mask": "right"}, {"mask": "left"}])),
    st.tuples(DAYS, st.sampled_from([{"dates": ["month", "quarter", "year"]}, {"dates": ["week", "decade"]}])),
    WORDS.map(a_tree),
)


def hierarchy_of(values, description):
    policy = shoal.Policy.of({
        "columns": {"x": {"role": "quasi", "hierarchy": description}},
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    return builders.build("x", policy.columns["x"].hierarchy, values, nulls=False, uncovered="error", folder=Path())


def leaves_read(hierarchy, text):
    read = LeavesBehind.read(hierarchy, [text])
    return set(range(len(hierarchy.leaves))) if 0 in read.everything else read.behind[0]


@examples(150)
@given(COLUMN)
def test_every_label_of_a_hierarchy_reads_back_as_the_leaves_under_it(column):
    hierarchy = hierarchy_of(*column)
    under = {}
    for codes, labels in zip(hierarchy.table, hierarchy.labels, strict=True):
        for leaf, code in enumerate(codes.tolist()):
            under.setdefault(labels[code], set()).add(leaf)
    for label, leaves in under.items():
        assert leaves_read(hierarchy, label) == leaves, label


@examples(150)
@given(st.data(), COLUMN, st.sampled_from(["range", "set"]), st.integers(0, 1))
def test_every_range_and_set_that_local_writes_reads_back_as_its_leaves(data, column, cells, least):
    hierarchy = hierarchy_of(*column)
    released = hierarchy.selected(
        range(least, hierarchy.n_levels)
    )  # from bins on, ranges are half-open where there are decimals
    try:
        vocabulary = Vocabulary(released, cells)
    except HierarchyError:  # labels that would look alike are refused, not written
        assume(False)
    n = len(hierarchy.leaves)
    if data.draw(st.booleans()):
        first = data.draw(st.integers(0, n - 1))
        chosen = set(range(first, data.draw(st.integers(first, n - 1)) + 1))
    else:
        chosen = data.draw(st.sets(st.integers(0, n - 1), min_size=1))
    joined = np.flatnonzero(np.isin(released.table[0], released.table[0][list(chosen)])).astype(np.int32)
    try:
        place = vocabulary.number_of(joined)
    except HierarchyError:
        assume(False)
    label = vocabulary.values.labels[place]
    assert leaves_read(hierarchy, label) == set(joined.tolist()), label


# ── Texts of other tools, by what they are made of ──────────────────────────────────────────────────────────


@examples(200)
@given(
    st.one_of(WHOLE, DECIMALS),
    st.tuples(st.integers(-300, 300), st.integers(-300, 300)).map(sorted),
    st.sampled_from([
        ("[{}, {}]", True, True), ("[{}, {})", True, False), ("({},{}]", False, True), ("[{};{}[", True, False),
        ("{} - {}", True, True), ("{} to {}", True, True), ("{}..{}", True, True), ("{}–{}", True, True),
        (">= {}", True, None), (">{}", False, None), ("<{1}", None, False), ("≤{1}", None, True),
    ]),
)  # fmt: skip
def test_a_range_in_any_style_stands_for_the_numbers_within(values, ends, style):
    low, high = (Decimal(end) / 4 for end in ends)
    form, from_low, to_high = style
    text = form.format(f"{low:f}", f"{high:f}")
    within = {
        value
        for value in values
        if (from_low is None or (low <= Decimal(value) if from_low else low < Decimal(value)))
        and (to_high is None or (Decimal(value) <= high if to_high else Decimal(value) < high))
    }
    found = Reader([text], values).covering(values)
    if text not in values:
        assert {value for value, texts in zip(values, found, strict=True) if texts} == within, text


@examples(150)
@given(
    st.sets(st.text("abcxyz", min_size=2, max_size=5), min_size=3, max_size=12).map(sorted),
    st.data(),
    st.sampled_from(["{{{}}}:, ", "{}:|", "[{}]:, ", "{}: / ", "{}:;", "({}):,", "{}: or "]),
)
def test_a_set_in_any_style_stands_for_its_members(values, data, style):
    members = data.draw(st.lists(st.sampled_from(values), min_size=2, max_size=4, unique=True))
    form, _, separator = style.rpartition(":")
    text = form.format(separator.join(members))
    found = Reader([text], values).covering(values)
    assert {value for value, texts in zip(values, found, strict=True) if texts} == set(members), text


@examples(150)
@given(
    st.sets(st.text("0123456789", min_size=5, max_size=5), min_size=2, max_size=30).map(sorted),
    st.data(),
    st.sampled_from("*x#•"),
)
def test_a_mask_in_any_style_stands_for_the_codes_that_it_leaves_open(values, data, letter):
    value = data.draw(st.sampled_from(values))
    hidden = data.draw(st.sets(st.integers(0, 4), min_size=1, max_size=4))
    text = "".join(letter if i in hidden else digit for i, digit in enumerate(value))
    open_ = {other for other in values if all(a in (b, letter) for a, b in zip(text, other, strict=True))}
    found = Reader([text], values).covering(values)
    assert {other for other, texts in zip(values, found, strict=True) if texts} == open_, text
