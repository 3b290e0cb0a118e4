"""If these fail, a table that is no hierarchy is accepted, or a level joins the wrong values."""

import numpy as np
import pytest

from shoal.errors import HierarchyError, UncoveredValueError
from shoal.hierarchies.hierarchy import Hierarchy

MARITAL = [
    ("divorced", "been_married", "*"),
    ("married", "been_married", "*"),
    ("widow", "been_married", "*"),
    ("single", "single", "*"),
]


@pytest.fixture
def marital() -> Hierarchy:
    return Hierarchy.from_paths("marital", MARITAL)


def released(hierarchy: Hierarchy, level: int) -> list[str | None]:
    return [hierarchy.label(level, code) for code in hierarchy.table[level]]


def test_codes_are_numbered_by_first_appearance_over_the_leaves(marital):
    assert marital.leaves == ("divorced", "married", "widow", "single")
    assert marital.table.dtype == np.int32
    assert marital.table.tolist() == [[0, 1, 2, 3], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert marital.labels[1:] == (("been_married", "single"), ("*",))
    assert (marital.n_levels, marital.height, marital.cardinality(1), marital.top) == (3, 2, 2, "*")
    assert marital.leaf_order == "given"


def test_sizes_count_leaves_and_shares_are_iyengars(marital):
    assert [size.tolist() for size in marital.sizes] == [[1, 1, 1, 1], [3, 1], [4]]
    assert [share.tolist() for share in marital.shares] == [[0, 0, 0, 0], [2 / 3, 0], [1]]


def test_a_domain_of_one_value_loses_nothing():
    only = Hierarchy.from_paths("c", [("a", "*")])
    assert [share.tolist() for share in only.shares] == [[0], [0]]


def test_arrays_cannot_be_written(marital):
    for array in (marital.table, *marital.shares, *marital.sizes):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_encode_finds_leaves_in_any_order(marital):
    leaves = marital.encode(["single", "divorced", "single"])
    assert leaves.tolist() == [3, 0, 3]
    assert leaves.dtype == np.int32
    assert marital.encode([]).tolist() == []


def test_encode_counts_what_is_missing_and_never_names_it(marital):
    with pytest.raises(UncoveredValueError) as caught:
        marital.encode(["secret", "single", "hidden", "secret", None])
    assert "'marital': 3 of 4 distinct values" in caught.value.message
    assert 'uncovered = "suppress"' in (caught.value.hint or "")
    assert "secret" not in str(caught.value)


def test_text_is_compared_as_text():
    codes = Hierarchy.from_paths("c", [("", "*"), ("0", "*"), ("00", "*"), ("e\u0301", "*"), ("\u00e9", "*")])
    assert codes.encode(["00", "", "\u00e9", "e\u0301", "0"]).tolist() == [2, 0, 4, 3, 1]
    with pytest.raises(UncoveredValueError):
        codes.encode([" 0"])


def test_steps_lead_from_code_to_code(marital):
    assert marital.step(0, 1).tolist() == [0, 0, 0, 1]
    assert marital.step(1, 2).tolist() == [0, 0]
    assert marital.step(1, 1).tolist() == [0, 1]
    assert marital.step(0, 2).dtype == np.int32


@pytest.mark.parametrize(("lower", "upper"), [(1, 0), (0, 3), (-1, 0)])
def test_there_are_no_steps_down_or_out(marital, lower, upper):
    with pytest.raises(ValueError, match="no step"):
        marital.step(lower, upper)


def test_c1_names_the_level_and_how_many_labels_are_at_fault():
    paths = [
        ("a", "x", "p", "*"),
        ("b", "x", "q", "*"),
        ("c", "y", "p", "*"),
        ("d", "y", "q", "*"),
        ("e", "z", "q", "*"),
    ]
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_paths("job", paths)
    assert caught.value.message == "column 'job': 2 labels at level 1 have more than one parent at level 2 (C1)"


def test_c1_holds_for_the_leaves_too():
    with pytest.raises(HierarchyError, match=r"1 values have more than one entry at level 0 \(C1\)"):
        Hierarchy.from_paths("job", [("a", "x", "*"), ("a", "y", "*")])


def test_c1_is_checked_from_a_level_0_that_merges_already():
    with pytest.raises(HierarchyError, match="1 labels at level 0 have more than one parent at level 1"):
        Hierarchy.from_levels("age", ["80", "90"], [[">=80", ">=80"], ["80-89", "90-99"], ["*", "*"]])


def test_c2_counts_the_tops():
    with pytest.raises(HierarchyError, match=r"'job': the top level has 2 labels instead of one \(C2\)"):
        Hierarchy.from_paths("job", [("a", "x"), ("b", "y"), ("c", "y")])


def test_paths_of_different_length_are_counted():
    with pytest.raises(HierarchyError, match="1 of 3 paths"):
        Hierarchy.from_paths("job", [("a", "*"), ("b", "*"), ("c", "x", "*")])


@pytest.mark.parametrize("paths", [[], [()]])
def test_nothing_is_no_hierarchy(paths):
    with pytest.raises(HierarchyError, match="its hierarchy has no"):
        Hierarchy.from_paths("job", paths)


def test_null_is_a_value_of_its_own_below_the_top(marital):
    null = marital.with_null()
    assert null.leaves[-1] is None
    assert [released(null, level)[-1] for level in range(3)] == [None, None, "*"]
    assert null.encode([None, "single"]).tolist() == [4, 3]
    assert null.domain == 5
    assert [share.tolist() for share in null.shares] == [[0] * 5, [2 / 4, 0, 0], [1]]
    assert null.sizes[2].tolist() == [5]
    assert null.with_null() is null
    assert len(marital.leaves) == 4


def test_a_hierarchy_of_one_level_grows_a_top_for_null():
    null = Hierarchy.from_paths("c", [("a",)]).with_null()
    assert null.labels == (("a", None), ("*",))
    assert [share.tolist() for share in null.shares] == [[0, 0], [1]]


def test_uncovered_values_are_at_the_top_on_every_level(marital):
    suppressed = marital.with_uncovered()
    assert suppressed.uncovered == 4
    assert [released(suppressed, level)[-1] for level in range(3)] == ["*", "*", "*"]
    assert suppressed.encode(["unheard", "widow", "*"]).tolist() == [4, 2, 4]
    assert suppressed.domain == 4
    assert [share.tolist() for share in suppressed.shares] == [[0, 0, 0, 0, 1], [2 / 3, 0, 1], [1]]
    assert [size.tolist() for size in suppressed.sizes] == [[1, 1, 1, 1, 4], [3, 1, 4], [4]]
    assert suppressed.with_uncovered() is suppressed


def test_null_and_uncovered_may_come_in_either_order(marital):
    one, other = marital.with_null().with_uncovered(), marital.with_uncovered().with_null()
    for leaf in ["widow", None, "unheard"]:
        for level in range(3):
            a, b = one.table[level, one.encode([leaf])[0]], other.table[level, other.encode([leaf])[0]]
            assert one.label(level, a) == other.label(level, b)
            assert one.shares[level][a] == other.shares[level][b]
            assert one.sizes[level][a] == other.sizes[level][b]


def test_a_star_that_means_something_else_below_the_top_cannot_hold_uncovered_values():
    starred = Hierarchy.from_paths("c", [("*", "known", "*"), ("a", "known", "*")])
    with pytest.raises(HierarchyError, match="C1"):
        starred.with_uncovered()


def test_a_star_that_climbs_to_the_top_holds_uncovered_values_too():
    starred = Hierarchy.from_paths("c", [("a", "*", "*"), ("b", "x", "*")]).with_uncovered()
    assert starred.labels[1] == ("*", "x")
    assert starred.shares[1].tolist() == [1, 0]
    assert starred.sizes[1].tolist() == [2, 1]


def test_the_loss_never_falls_on_the_way_up_even_for_an_uncovered_value_beside_one_leaf():
    lone = Hierarchy.from_paths("c", [("a", "*")]).with_uncovered()
    assert [share.tolist() for share in lone.shares] == [[0, 1], [1]]


def test_an_empty_hierarchy_takes_null_and_uncovered_values():
    grown = Hierarchy.empty("c", 3, "text").with_null().with_uncovered()
    assert grown.encode([None, "anything"]).tolist() == [0, 1]
    assert grown.labels == ((None, "*"), (None, "*"), ("*",))
    assert [share.tolist() for share in grown.shares] == [[0, 1], [0, 1], [1]]
    assert Hierarchy.empty("c", 3, "text").step(0, 2).tolist() == []


def test_given_shares_survive_null_except_at_the_top():
    ages = Hierarchy.from_levels("age", ["20"], [["20"], ["*"]], shares=[[0.0], [0.0]], leaf_order="numeric")
    null = ages.with_null()
    assert [share.tolist() for share in null.shares] == [[0, 0], [1]]
    assert null.leaf_order == "numeric"


def test_many_leaves_are_no_trouble():
    n = 100_000
    paths = [(str(i), str(i // 10), str(i // 100), "*") for i in range(n)]
    hierarchy = Hierarchy.from_paths("c", paths)
    assert [hierarchy.cardinality(level) for level in range(4)] == [n, n // 10, n // 100, 1]
    assert hierarchy.encode([str(n - 1)]).tolist() == [n - 1]
