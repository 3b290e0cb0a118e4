"""Each Numba loop against a twin in plain Python, and packed keys that outgrow a word."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import Case, Column, best, suppressed
from examples import examples, some
from shoal.compiled.deriving import derive, derive_large, derive_node
from shoal.compiled.grouping import group, sum_by_class
from shoal.compiled.histograms import merge_histograms, take_histograms
from shoal.compiled.nodes import lose_classes, number_large, price_levels, raise_low, too_small
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.search import SEARCHES
from shoal.search.full_domain.lattice import below
from shoal.search.full_domain.rollup import KeyLayout, Rollup, Steps
from shoal.search.losses.cells import losses
from shoal.tables.frequency import FrequencyTable, among, packed, unique_patterns
from strategies import answer_of, problem_of, suppressed_at

# In one worker: the last test asks what all have run.
pytestmark = [pytest.mark.usefixtures("both_ways"), pytest.mark.xdist_group("kernels")]

WORD = 2**64 - 1


def grouped(keys):
    """The class of each key and the first place of each class, by first appearance."""
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return [numbers[key] for key in keys], [keys.index(key) for key in numbers]


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, WORD), st.sampled_from([0, WORD, 1 << 63]))))
def test_group_numbers_keys_by_first_appearance(keys):
    class_of, firsts = group(np.array(keys, np.uint64))
    assert (class_of.tolist(), firsts.tolist()) == grouped(keys)


def test_group_tells_keys_apart_that_share_a_slot():
    # Multiples of 2^60 hash onto few slots of a small table: every probe has to compare the key itself.
    keys = [i << 60 for i in range(16)] * 3
    class_of, _ = group(np.array(keys, np.uint64))
    assert class_of.tolist() == [*range(16)] * 3


@given(st.lists(st.tuples(st.integers(-(2**50), 2**50), st.integers(0, 6))))
def test_sum_by_class_adds_up(rows):
    totals = Counter()
    for value, c in rows:
        totals[c] += value
    values = np.array([value for value, _ in rows], np.int64)
    found = sum_by_class(values, np.array([c for _, c in rows], np.int64), 7)
    assert found.tolist() == [totals[c] for c in range(7)]


ROWS = st.lists(st.dictionaries(st.integers(0, 5), st.integers(1, 10**12)), max_size=12)


@pytest.mark.parametrize("n_values", [6, 100_000])  # by way of a matrix, and too many values for one
@given(rows=ROWS, data=st.data())
def test_merge_histograms_adds_value_by_value(rows, data, n_values):
    class_of = data.draw(st.lists(st.integers(-1, 3), min_size=len(rows), max_size=len(rows)))
    starts, values, counts = flat(rows)
    found = merge_histograms(starts, values, counts, np.array(class_of, np.int64), 4, n_values)
    merged = [Counter() for _ in range(4)]
    for row, c in zip(rows, class_of, strict=True):
        if c >= 0:
            merged[c].update(row)
    assert found[0].tolist() == np.cumsum([0, *map(len, merged)]).tolist()
    assert found[1].tolist() == [v for histogram in merged for v in sorted(histogram)]
    assert found[2].tolist() == [histogram[v] for histogram in merged for v in sorted(histogram)]


def flat(rows):
    """Rows of counts by value as starts, values and counts."""
    values = np.array([v for row in rows for v in row], np.int32)
    counts = np.array([n for row in rows for n in row.values()], np.int64)
    return np.cumsum([0, *map(len, rows)]), values, counts


@given(ROWS, st.data())
def test_take_histograms_takes_rows_in_any_order(rows, data):
    taken = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5)) if rows else []
    found = take_histograms(*flat(rows), np.array(taken, np.int64))
    assert [part.tolist() for part in found] == [part.tolist() for part in flat([rows[i] for i in taken])]


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(1, 10), st.data())
def test_number_large_numbers_the_classes_that_are_large_enough(sizes, least, data):
    class_of = data.draw(st.lists(st.integers(0, len(sizes) - 1)))
    large, numbers = number_large(np.array(sizes), least, np.array(class_of, np.int64))
    expected = [c for c, size in enumerate(sizes) if size >= least]
    assert large.tolist() == expected
    assert numbers.tolist() == [expected.index(c) if c in expected else -1 for c in class_of]


def packed_by_hand(codes, bits):
    """Fields from the lowest bit up, a new word where the next one does not fit."""
    keys = []
    for row in codes:
        words, used = [0], 0
        for code, width in zip(row, bits, strict=True):
            if used + width > 64:
                words.append(0)
                used = 0
            words[-1] |= code << used
            used += width
        keys.append(words)
    return keys


@st.composite
def layouts(draw):
    """Cardinalities of columns, and rows of codes; often wider than a word."""
    bits = draw(st.lists(st.integers(1, 31), min_size=1, max_size=7))
    cardinalities = [draw(st.integers(2 ** (b - 1) + 1, 2**b)) for b in bits]
    n = draw(st.sampled_from([0, 1, 5, 511, 512, 513, 1100]))
    few = [draw(st.lists(st.integers(0, c - 1), min_size=1, max_size=3)) for c in cardinalities]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = np.column_stack([rng.choice([*values, c - 1], n) for values, c in zip(few, cardinalities, strict=True)])
    return bits, cardinalities, codes.reshape(n, len(bits)).astype(np.int32)


@given(layouts())
def test_a_layout_packs_codes_into_as_many_words_as_they_need_and_back(layout):
    bits, cardinalities, codes = layout
    made = KeyLayout(cardinalities)
    keys = made.packed(codes)
    assert keys.tolist() == packed_by_hand(codes.tolist(), bits)
    assert (made.codes(keys) == codes).all()


@given(layouts())
def test_packed_rows_are_equal_exactly_where_the_rows_are(layout):
    _, _, codes = layout
    keys = packed(codes).tolist()
    rows = [tuple(row) for row in codes.tolist()]
    assert len(set(zip(keys, rows, strict=True))) == len(set(keys)) == len(set(rows))
    some = codes[::3]
    assert among(codes, some).tolist() == [row in {tuple(r) for r in some.tolist()} for row in rows]


@pytest.mark.parametrize("total", [63, 64, 65, 66, 67, 95])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_packed_rows_around_64_bits_keep_the_highest_bit_of_every_column(total, place):
    bits = [31, 31, total - 62] if total < 94 else [31, 31, 31, total - 93]
    full = np.array([[2**b - 1 for b in bits]] * 3, np.int32)
    full[1:, place] = [2 ** (bits[place] - 1) - 1, 2 ** (bits[place] - 1)]  # without the highest bit, and it alone
    assert len(set(packed(full).tolist())) == len({tuple(row) for row in full.tolist()})


def test_packed_rows_of_more_than_64_bits_that_differ_in_the_first_column_only_stay_apart():
    largest = 2**31 - 1
    codes = np.array([[i, largest, largest, largest, 0] for i in (0, 1, 2, 1)], np.int32)
    keys = packed(codes)
    assert [int(key == keys[1]) for key in keys] == [0, 1, 0, 1]


@dataclass
class Step:
    """Packed rows, columns of them to recode, and what comes out by hand."""

    layout: KeyLayout
    codes: np.ndarray
    counts: np.ndarray
    changed: list[int]
    tables: list[np.ndarray]  # for each changed column, the new code of every code
    rows: list[tuple[int, ...]]  # packed anew

    @classmethod
    def of(cls, layout, changed, rng):
        bits, cardinalities, codes = layout
        tables = [rng.integers(0, cardinalities[j], cardinalities[j]).astype(np.uint64) for j in changed]
        recoded = codes.copy()
        for j, table in zip(changed, tables, strict=True):
            recoded[:, j] = table[codes[:, j]]
        rows = [tuple(words) for words in packed_by_hand(recoded.tolist(), bits)]
        return cls(KeyLayout(cardinalities), codes, rng.integers(1, 10**9, len(codes)), changed, tables, rows)

    @property
    def totals(self):
        totals = Counter()
        for row, n in zip(self.rows, self.counts.tolist(), strict=True):
            totals[row] += n
        return totals

    @property
    def arguments(self):
        made = self.layout
        offsets = np.cumsum([0, *map(len, self.tables)])[:-1].astype(np.int64)
        steps = np.concatenate([np.zeros(0, np.uint64), *self.tables])
        chosen = (made.words[self.changed], made.shifts[self.changed], made.masks[self.changed])
        return (made.packed(self.codes), self.counts, *chosen, offsets, steps)


@st.composite
def steps(draw, one_word=False):
    layout = draw(layouts())
    if one_word:  # as many of the columns as fit
        fit = np.cumsum(layout[0]) <= 64
        layout = (
            [b for b, f in zip(layout[0], fit, strict=True) if f],
            [c for c, f in zip(layout[1], fit, strict=True) if f],
            layout[2][:, fit],
        )
    # Codes in the millions would need tables as long: the columns that change are narrow ones.
    narrow = [j for j, c in enumerate(layout[1]) if c <= 64]
    changed = draw(st.lists(st.sampled_from(narrow), unique=True)) if narrow else []
    return Step.of(layout, changed, np.random.default_rng(draw(st.integers(0, 2**32))))


@examples(60)
@given(steps(one_word=True), st.sampled_from(["as many as there are", "as many as rows", "no bound"]))
def test_derive_recodes_some_columns_and_groups_again(step, bound):
    totals = step.totals
    most = {"as many as there are": len(totals), "as many as rows": len(step.codes)}.get(bound, 1 << 40)
    packed_rows, counts, _, *recode = step.arguments
    for with_classes in (True, False):
        keys, sums, class_of = derive(packed_rows[:, 0], counts, *recode, max(1, most), with_classes)
        assert [(key,) for key in keys.tolist()] == list(totals)
        assert sums.tolist() == list(totals.values())
        assert class_of.tolist() == (grouped(step.rows)[0] if with_classes else [])


@examples(40)
@given(steps(one_word=True))
def test_a_negative_offset_stands_for_a_step_onto_0(step):
    packed_rows, counts, _, shifts, masks, offsets, table = step.arguments
    zeros = np.zeros(max(map(len, step.tables), default=0), np.uint64)
    onto_0 = derive(packed_rows[:, 0], counts, shifts, masks, np.zeros_like(offsets), zeros, 1 << 40, True)
    skipped = derive(packed_rows[:, 0], counts, shifts, masks, np.full_like(offsets, -1), table, 1 << 40, True)
    assert [part.tolist() for part in skipped] == [part.tolist() for part in onto_0]


@examples(60)
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 40, 600]), st.booleans(), st.booleans())
def test_derive_node_takes_rows_from_one_nodes_levels_to_another(seed, n, with_classes, tight):
    rng = np.random.default_rng(seed)
    hierarchies = tuple(halving_hierarchy(f"c{j}", rng.integers(1, 20)) for j in range(rng.integers(1, 5)))
    here = np.array([rng.integers(0, h.n_levels) for h in hierarchies])
    there = np.array([rng.integers(level, h.n_levels) for level, h in zip(here, hierarchies, strict=True)])
    leaves = np.column_stack([rng.integers(0, len(h.leaves), n) for h in hierarchies]).astype(np.int32)
    counts = rng.integers(1, 10**9, n)
    of, made = Steps.from_hierarchies(hierarchies), KeyLayout([h.cardinality(0) for h in hierarchies])
    keys, sums, class_of = derive_node(
        *(made.packed(codes_at(hierarchies, leaves, here))[:, 0], counts, here, there, made.shifts, made.masks),
        *(of.n_labels, of.offsets, of.codes, with_classes, min(n, of.max_classes(there)) if tight else n),
    )
    totals = Counter()
    rows = [tuple(row) for row in codes_at(hierarchies, leaves, there).tolist()]
    for row, count in zip(rows, counts.tolist(), strict=True):
        totals[row] += count
    assert [tuple(row) for row in made.codes(keys[:, None]).tolist()] == list(totals)
    assert sums.tolist() == list(totals.values())
    assert class_of.tolist() == (grouped(rows)[0] if with_classes else [])


def codes_at(hierarchies, leaves, levels):
    """The code of every leaf at the level of its column."""
    return np.column_stack([h.table[levels[j]][leaves[:, j]] for j, h in enumerate(hierarchies)]).astype(np.int32)


def halving_hierarchy(name, n_leaves):
    """Every level joins neighbours, up to a top."""
    levels = [[f"{i}" for i in range(n_leaves)]]
    while len(set(levels[-1])) > 1:
        levels.append([f"{len(levels)}:{i >> len(levels)}" for i in range(n_leaves)])
    return Hierarchy.from_levels(name, levels[0], levels)


def require_shares_make_the_whole(step, share_bits):
    """The shares of ``derive_large`` have no key in common, and together they are what ``derive`` finds."""
    totals = step.totals
    together, owned = {}, np.zeros(len(step.rows), np.int64)
    for share in range(1 << share_bits):
        keys, sums, class_of = derive_large(*step.arguments, True, share, share_bits)
        found = [tuple(key) for key in keys.tolist()]
        assert len(set(found)) == len(found)
        assert not together.keys() & set(found)
        together |= dict(zip(found, sums.tolist(), strict=True))
        mine = np.flatnonzero(class_of >= 0)
        owned[mine] += 1
        assert all(found[class_of[i]] == step.rows[i] for i in mine)
        without = derive_large(*step.arguments, False, share, share_bits)
        assert (without[0].tolist(), without[1].tolist(), len(without[2])) == (keys.tolist(), sums.tolist(), 0)
    assert together == totals
    assert (owned == 1).all()


@examples(40)
@given(steps(), st.integers(0, 2))
def test_derive_large_deals_rows_into_shares_that_make_the_whole(step, share_bits):
    require_shares_make_the_whole(step, share_bits)


@pytest.mark.parametrize("bits", [(6, 20, 10), (6, 31, 31, 20)])
@pytest.mark.parametrize("share_bits", [0, 1])
def test_derive_large_groups_tens_of_thousands_of_rows_in_several_parts(bits, share_bits):
    rng = np.random.default_rng(4)
    cardinalities = [2**b for b in bits]
    codes = np.column_stack([rng.integers(0, 2 ** min(b, 6), 40_000) for b in bits]).astype(np.int32)
    require_shares_make_the_whole(Step.of((bits, cardinalities, codes), [0], rng), share_bits)


@given(st.lists(st.integers(0, 2**62), max_size=3), st.lists(st.integers(1, 9), max_size=20), st.integers(1, 10))
def test_too_small_finds_the_counts_below_the_least(large, small, least):
    counts = [*small, *large]
    failing, lost, total = too_small(np.array(counts, np.int64), least)
    assert failing.tolist() == [n < least for n in counts]
    assert lost.tolist() == [n if n < least else 0 for n in counts]
    assert total == sum(n for n in counts if n < least)


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 6), st.data())
def test_lose_classes_counts_what_fails_and_what_no_lower_node_keeps(counts, least, data):
    lost, kept, large, fates, most = [*counts], set(), [], [], []
    for c, n in enumerate(counts):
        if n < least:
            continue
        large.append(c)
        fates.append(data.draw(st.sampled_from(["passes", "torn", "lost"])))
        if fates[-1] == "passes":
            lost[c] = 0
            kept.add(c)
        elif fates[-1] == "torn":
            stay, rounded = data.draw(st.sampled_from([(0, 0.0), (0, 0.4), (1, 1.5), (n, n - 1e-7), (n, float(n))]))
            most.append(rounded)
            lost[c] = n - (stay if stay >= least else 0)
    marked = [np.array([fate in kinds for fate in fates], np.bool_) for kinds in (("passes", "torn"), ("passes",))]
    found = lose_classes(np.array(counts, np.int64), np.array(large, np.int64), *marked, np.array(most, float), least)
    assert found[0].tolist() == [c not in kept for c in range(len(counts))]
    assert found[1].tolist() == lost
    assert found[2:] == (sum(n for c, n in enumerate(counts) if c not in kept), sum(lost))


@given(layouts(), st.sampled_from([4, 40, 1100]), st.data())
def test_price_levels_prices_every_cell(layout, most_rows, data):
    _, cardinalities, codes = layout
    narrow = [j for j, c in enumerate(cardinalities) if c <= 64]
    if not narrow:
        return
    codes, cardinalities = codes[:most_rows, narrow], [cardinalities[j] for j in narrow]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    levels = rng.integers(0, 3, len(narrow))
    weights = rng.integers(0, 3, len(codes))
    base = rng.random((len(narrow), 3)) * 10
    offsets = np.full((len(narrow), 3, 3), -1)
    n_labels = np.full((len(narrow), 3), -1)
    prices = []
    for j, cardinality in enumerate(cardinalities):
        n_labels[j, levels[j]] = cardinality
        for level in range(levels[j] + 1):
            offsets[j, levels[j], level] = len(prices)
            prices += rng.random(cardinality).tolist()
    made = KeyLayout(cardinalities)
    found = price_levels(
        *(made.packed(codes), weights, levels, made.words, made.shifts, made.masks),
        *(n_labels, offsets, np.array(prices), base),
    )
    for j, top in enumerate(levels):
        sums = [
            base[j, level]
            + sum(w * prices[offsets[j, top, level] + c] for w, c in zip(weights, codes[:, j], strict=True))
            for level in range(top + 1)
        ]
        least = [min(sums[level:]) for level in range(top + 1)]
        assert found[j].tolist() == pytest.approx([*least, *base[j, top + 1 :]])


NODES = st.tuples(*[st.integers(0, 2)] * 3)


@given(NODES, NODES, st.lists(NODES, max_size=6))
def test_raise_low_leaves_out_only_what_is_below_a_barren_node(low, high, barren):
    low, high = tuple(map(min, low, high)), tuple(map(max, low, high))
    box = [node for node in np.ndindex(3, 3, 3) if below(low, node) and below(node, high)]
    left = [node for node in box if not any(below(node, other) for other in barren)]
    raised = np.array(low)
    found = raise_low(raised, np.array(high), np.array(barren, np.int64).reshape(-1, 3))
    assert found == bool(left)  # whatever is left, the highest node is
    if found:
        assert below(low, raised)
        assert all(below(raised, node) for node in left)
        # Of one barren node it leaves nothing to find.
        if len(barren) == 1:
            assert raised.tolist() == np.min(left, axis=0).tolist()


def wide_hierarchy(name, n_leaves):
    levels = [[f"{i}" for i in range(n_leaves)], [f"{i // 50}" for i in range(n_leaves)], ["*"] * n_leaves]
    return Hierarchy.from_levels(name, levels[0], levels)


@pytest.mark.parametrize("room", some([0, 1 << 24], always=1))
def test_node_tables_wider_than_a_word_are_those_of_grouping_the_records_whatever_is_remembered(room):
    rng = np.random.default_rng(7)
    hierarchies = tuple(wide_hierarchy(f"c{j}", 1000) for j in range(8))
    codes = rng.integers(0, 1000, (5000, 8)).astype(np.int32)
    codes[1000:, 1:] = codes[rng.integers(0, 1000, 4000), 1:]
    table = FrequencyTable(tuple(f"c{j}" for j in range(8)), codes, rng.integers(1, 10**9, 5000), {}, None, hierarchies)
    rollup = Rollup(table, room)
    assert rollup.layout.n_words == 2
    nodes = [tuple(node) for node in rng.integers(0, 3, (40, 8)).tolist()]
    for node in [*nodes, *sorted(nodes)]:
        distinct, class_of = np.unique(codes_at(hierarchies, codes, node), axis=0, return_inverse=True)
        counts = np.zeros(len(distinct), np.int64)
        np.add.at(counts, class_of.ravel(), table.counts)
        found = rollup.at(node)
        order = np.lexsort(found.codes.T[::-1])
        assert (found.codes[order] == distinct).all()
        assert (found.counts[order] == counts).all()


def test_a_problem_whose_keys_take_two_words_is_solved_like_any_other():
    rng = np.random.default_rng(1)
    # Nine columns of 200 values, eight bits each.
    columns = [Column(name, {f"{name}{i}": (f"{name}{i}", "*") for i in range(200)}) for name in "abcdefghi"]
    # The last column, alone in the second word, is what tells most records apart.
    rows = [
        tuple(f"{c.name}{i}" for c, i in zip(columns, [*rng.integers(0, 2, 8) * 199, rng.integers(0, 3)], strict=True))
        for _ in range(14)
    ]
    case = Case(tuple(columns), tuple(rows), ({"model": "k-anonymity", "k": 2},), limit=3)
    problem = problem_of(case)
    assert problem.rollup.layout.n_words == 2
    for node in list(problem.lattice)[::7]:
        expected = {case.released(i, node) for i in suppressed(case, node)}
        assert suppressed_at(problem, problem.evaluate(node)) == expected
    expected = best(case, "loss")
    for name in ("exhaustive", "optimal"):
        problem = problem_of(case)
        recoding = SEARCHES[name](problem)
        found = answer_of(problem, recoding)
        assert (found.node, found.suppressed) == (expected.node, expected.suppressed)
        assert losses(problem, recoding)["loss"] == pytest.approx(expected.value)


@pytest.mark.parametrize("n_columns", [1, 3, 64, 70, 200])
def test_unique_patterns_are_the_distinct_rows_in_their_order(n_columns):
    rng = np.random.default_rng(n_columns)
    marked = rng.random((300, n_columns)) < rng.choice([0.01, 0.5], n_columns)
    patterns, pattern_of = unique_patterns(marked)
    expected, expected_of = np.unique(marked, axis=0, return_inverse=True)
    np.testing.assert_array_equal(patterns, expected)
    np.testing.assert_array_equal(pattern_of, expected_of.ravel())


def test_the_loops_that_may_be_interpreted_were_run_both_ways(both_ways):
    assert both_ways >= {
        "_number_keys",
        "_add_by_class",
        "_merge_densely",
        "_merge_sparsely",
        "_derive",
        "_price_levels",
        "_lose_classes",
        "_number_large",
        "raise_low",
        "_take_histograms",
        "_too_small",
        "_unpack",
        "add_by_leaf",
        "recode_leaves",
    }
