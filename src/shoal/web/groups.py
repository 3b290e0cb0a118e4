"""A hierarchy in the hands of a person: values moved between groups, groups renamed, split and merged.

A hierarchy is kept as its rows: row 0 are the values, row n their labels on level n. Every edit gives new rows in
which a label has one parent, so that what is built of them is a hierarchy again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from shoal.errors import HierarchyError
from shoal.inspection.preview import Preview

Labels = list[list[str]]


def preview_rows(preview: Preview) -> Labels:
    """The values, then the labels of each level."""
    hierarchy = preview.hierarchy
    levels = [
        [_text(hierarchy.label(level, code)) for code in hierarchy.table[level]] for level in range(hierarchy.n_levels)
    ]
    leaves = [_text(leaf) for leaf in hierarchy.leaves]
    return levels if levels[0] == leaves else [leaves, *levels]


def _text(label: str | None) -> str:
    return "" if label is None else label


def moved(rows: Labels, level: int, children: Collection[str], group: str) -> Labels:
    """The same with some labels of the level below in another group of ``level``, which is made where there is none.

    A group that exists keeps its place on the levels above; a new one takes that of the first child that moves.
    """
    _require(rows, level, group)
    members = [i for i, label in enumerate(rows[level]) if label == group]
    moving = [i for i, label in enumerate(rows[level - 1]) if label in children]
    if not moving:
        raise HierarchyError("no value was chosen", "tick those that should move")
    model = members[0] if members else moving[0]
    new = [list(row) for row in rows]
    for i in moving:
        new[level][i] = group
        for above in range(level + 1, len(rows)):
            new[above][i] = rows[above][model]
    return new


def renamed(rows: Labels, level: int, group: str, name: str) -> Labels:
    """The same with a group of ``level`` by another name; one that has the name already takes its members in."""
    _require(rows, level, name)
    if group not in rows[level]:
        raise HierarchyError("no group was chosen", "choose one")
    members = {below for below, label in zip(rows[level - 1], rows[level], strict=True) if label == group}
    return moved(rows, level, members, name)


def with_level(rows: Labels, level: int) -> Labels:
    """The same with one more level above ``level``, whose groups are those of ``level``."""
    if not 0 <= level < len(rows) - 1:
        raise HierarchyError("there is no such level")
    return [*rows[: level + 1], list(rows[level]), *rows[level + 1 :]]


def without_level(rows: Labels, level: int) -> Labels:
    """The same without a level; the values and the top stay."""
    if not 0 < level < len(rows) - 1:
        raise HierarchyError("the values and the top stay")
    return [*rows[:level], *rows[level + 1 :]]


def tree_of(rows: Labels) -> dict[str, Any]:
    """The rows as a policy writes a tree: groups within groups, the values innermost."""
    tree: dict[str, Any] = {}
    for path in zip(*rows, strict=True):
        *groups, last, leaf = reversed(path)
        node = tree
        for label in groups:
            node = node.setdefault(label, {})
        node.setdefault(last, []).append(leaf)
    return {"tree": tree}


def groups_on(rows: Labels, level: int, counts: Sequence[int]) -> list[dict[str, Any]]:
    """The groups of a level with their members on the level below, each with its records."""
    groups: dict[str, dict[str, int]] = {}
    for below, label, n in zip(rows[level - 1], rows[level], counts, strict=True):
        members = groups.setdefault(label, {})
        members[below] = members.get(below, 0) + int(n)
    return [{"name": name, "members": members, "records": sum(members.values())} for name, members in groups.items()]


def _require(rows: Labels, level: int, name: str) -> None:
    if not 0 < level < len(rows) - 1:
        raise HierarchyError("groups are changed between the values and the top", "choose a level between")
    if not name.strip():
        raise HierarchyError("a group needs a name")
