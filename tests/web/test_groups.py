"""Groups of a hierarchy edited by hand: whatever is done, a hierarchy comes out."""

import random

import pyarrow as pa
import pytest

import shoal
from shoal.errors import HierarchyError
from shoal.web import groups

ROWS = [["a", "b", "c", "d"], ["ab", "ab", "cd", "cd"], ["*", "*", "*", "*"]]


def test_a_value_moves_to_another_group_and_to_a_new_one() -> None:
    assert groups.moved(ROWS, 1, {"b"}, "cd")[1] == ["ab", "cd", "cd", "cd"]
    assert groups.moved(ROWS, 1, {"b", "c"}, "new")[1] == ["ab", "new", "new", "cd"]
    assert ROWS[1] == ["ab", "ab", "cd", "cd"]


def test_a_group_is_renamed_and_merged() -> None:
    assert groups.renamed(ROWS, 1, "ab", "first")[1] == ["first", "first", "cd", "cd"]
    assert groups.renamed(ROWS, 1, "ab", "cd")[1] == ["cd", "cd", "cd", "cd"]


def test_a_group_that_moves_takes_the_place_of_its_new_group_on_all_levels() -> None:
    rows = [["a", "b", "c"], ["a1", "b1", "c1"], ["left", "left", "right"], ["*", "*", "*"]]
    assert groups.moved(rows, 1, {"b"}, "c1")[2] == ["left", "right", "right"]


@pytest.mark.parametrize(("level", "name"), [(0, "x"), (2, "x"), (1, " "), (9, "x")])
def test_values_and_top_stay_and_a_group_has_a_name(level: int, name: str) -> None:
    with pytest.raises(HierarchyError):
        groups.moved(ROWS, level, {"a"}, name)


def test_any_number_of_edits_leaves_a_hierarchy_with_one_parent_per_label_and_one_top() -> None:
    """C1 and C2 are checked by whoever builds it; the values stay, each once."""
    draw = random.Random(1)
    values = [f"v{i}" for i in range(12)]
    table = pa.table({"x": values * 3})
    rows = groups.with_level([values, ["*"] * 12], 0)
    for _ in range(200):
        level = draw.randrange(1, len(rows) - 1)
        match draw.randrange(4):
            case 0:
                rows = groups.moved(rows, level, set(draw.sample(rows[level - 1], 3)), f"g{draw.randrange(6)}")
            case 1:
                rows = groups.renamed(rows, level, draw.choice(rows[level]), f"g{draw.randrange(6)}")
            case 2 if len(rows) < 6:
                rows = groups.with_level(rows, level)
            case 3 if len(rows) > 3:
                rows = groups.without_level(rows, level)
        built = shoal.hierarchy(table, "x", given=groups.tree_of(rows))
        assert sorted(map(str, built.hierarchy.leaves)) == sorted(values)
        assert groups.tree_of(groups.preview_rows(built)) == groups.tree_of(rows)
