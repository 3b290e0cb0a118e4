"""Tables of nodes, derived from each other in any order, against grouping the records anew."""

import itertools
import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.search.full_domain import rollup as module
from shoal.search.full_domain.lattice import Lattice, below
from shoal.search.full_domain.rollup import KeyLayout, NodeTable, Rollup
from shoal.tables.frequency import Domain, count_records


def hierarchy(rng: random.Random, name: str, n_leaves: int) -> Hierarchy:
    """Every level joins labels of the one below at random; sometimes level 0 already does."""
    current = list(range(n_leaves))
    levels = [[f"{name}{leaf}" for leaf in current]]
    if rng.random() < 0.25:
        current = [leaf // 2 for leaf in current]
        levels = [[f"{name}0-{c}" for c in current]]
    for level in range(1, rng.randint(1, 4)):
        onto = [rng.randrange(max(1, len(set(current)) // 2)) for _ in range(max(current) + 1)]
        current = [onto[c] for c in current]
        levels.append([f"{name}{level}-{c}" for c in current])
    leaves = [f"{name}{leaf}" for leaf in range(n_leaves)]
    return Hierarchy.from_levels(name, leaves, [*levels, ["*"] * n_leaves])


class Records:
    """A table kept record by record, so that every node can be grouped from the ground."""

    def __init__(self, seed: str, *, n: int, leaves: list[int], sensitive: bool, entities: bool) -> None:
        rng = random.Random(seed)
        self.hierarchies = tuple(hierarchy(rng, f"c{j}", m) for j, m in enumerate(leaves))
        self.codes = np.array([[rng.randrange(m) for m in leaves] for _ in range(n)], np.int32)
        self.values = {name: [rng.randrange(5) for _ in range(n)] for name in "su"} if sensitive else {}
        self.persons = [rng.randrange(max(1, n // 3)) for _ in range(n)] if entities else None
        domains = {
            Domain(name, tuple("01234"), np.bincount(values, minlength=5)): np.array(values, np.int32)
            for name, values in self.values.items()
        }
        self.table, _ = count_records(
            tuple(h.column for h in self.hierarchies),
            self.codes,
            domains,
            None if self.persons is None else np.array(self.persons, np.int32),
            self.hierarchies,
        )

    def nodes(self, rng: random.Random, n: int) -> list[tuple[int, ...]]:
        lattice = Lattice(tuple(h.height for h in self.hierarchies))
        return [tuple(rng.randint(0, top) for top in lattice.heights) for _ in range(n)]

    def assert_equal(self, found: NodeTable, node: tuple[int, ...]) -> None:
        """The table of a node is what grouping its records gives."""
        members: dict[tuple[int, ...], list[int]] = defaultdict(list)
        columns = [h.table[level] for h, level in zip(self.hierarchies, node, strict=True)]
        for i, record in enumerate(self.codes):
            members[tuple(int(of[leaf]) for of, leaf in zip(columns, record, strict=True))].append(i)
        assert found.node == node
        tuples = [tuple(row) for row in found.codes.tolist()]
        assert len(set(tuples)) == len(tuples)
        assert dict(zip(tuples, found.counts.tolist(), strict=True)) == {t: len(E) for t, E in members.items()}
        frequency = found.frequency
        assert frequency.codes.tolist() == found.codes.tolist()
        assert frequency.counts.tolist() == found.counts.tolist()
        assert frequency.hierarchies == self.hierarchies
        assert frequency.sensitive.keys() == self.values.keys()
        for name, histogram in frequency.sensitive.items():
            assert histogram.n_values == 5
            for i, released in enumerate(tuples):
                expected = Counter(self.values[name][r] for r in members[released])
                own = slice(histogram.starts[i], histogram.starts[i + 1])
                entries = zip(histogram.values[own].tolist(), histogram.counts[own].tolist(), strict=True)
                assert sorted(entries) == sorted(expected.items())
        if self.persons is None:
            assert frequency.entities is None
        else:
            expected = [len({self.persons[r] for r in members[released]}) for released in tuples]
            assert frequency.persons.tolist() == expected


KINDS = [
    pytest.param({"sensitive": False, "entities": False}, id="counts alone"),
    pytest.param({"sensitive": True, "entities": False}, id="with sensitive values"),
    pytest.param({"sensitive": True, "entities": True}, id="with sensitive values and persons"),
    pytest.param({"sensitive": False, "entities": True}, id="with persons"),
]


@pytest.mark.parametrize("room", [0, 50, 500, 1 << 26])
@pytest.mark.parametrize("kind", KINDS)
def test_nodes_in_any_order_are_what_grouping_the_records_gives(kind, room):
    for seed in range(4):
        records = Records(f"{seed}", n=60, leaves=[7, 4, 9], **kind)
        rollup = Rollup(records.table, room=room)
        for node in records.nodes(random.Random(seed), 25):
            records.assert_equal(rollup.at(node), node)


@pytest.mark.parametrize("room", [0, 2000, 1 << 26])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_on_the_way_are_kept_or_forgotten_without_a_difference(kind, room, monkeypatch):
    # Every table counts as large, so that a node is reached column by column.
    monkeypatch.setattr(module, "LARGE", 0)
    for seed in range(3):
        records = Records(f"way {seed}", n=120, leaves=[11, 6, 5, 3], **kind)
        rollup = Rollup(records.table, room=room)
        for node in records.nodes(random.Random(seed), 20):
            records.assert_equal(rollup.at(node), node)


@pytest.mark.parametrize("room", [0, 1 << 26])
@pytest.mark.parametrize("kind", KINDS)
def test_nodes_are_derived_from_huge_tables_in_one_step(kind, room, monkeypatch):
    monkeypatch.setattr(module, "LARGE", 5)
    monkeypatch.setattr(module, "HUGE", 20)
    for seed in range(3):
        records = Records(f"cells {seed}", n=150, leaves=[11, 6, 5, 3], **kind)
        rollup = Rollup(records.table, room=room)
        for node in [
            (0, 0, 0, 0),
            tuple(h.height for h in records.hierarchies),
            *records.nodes(random.Random(seed), 20),
        ]:
            records.assert_equal(rollup.at(node), node)


@pytest.mark.parametrize("huge", [20, 1 << 17])
def test_the_nearest_table_is_the_smallest_below_the_node(huge, monkeypatch):
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(module, "HUGE", huge)
    records = Records("nearest", n=200, leaves=[12, 9, 7, 2], sensitive=False, entities=False)
    rollup = Rollup(records.table)
    for node in records.nodes(random.Random(huge), 40):
        nearest = rollup._nearest(node)
        sizes = [len(table.counts) for table in rollup._tables.values() if below(table.node, node)]
        assert below(nearest.node, node)
        assert node in rollup._tables or len(nearest.counts) == min(sizes, default=len(rollup._ground.counts))
        assert rollup.at(node).node == node


@pytest.mark.parametrize("huge", [20, 1 << 17])
@pytest.mark.parametrize("room", [0, 3000, 1 << 26])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_more_than_one_word(kind, room, huge, monkeypatch):
    monkeypatch.setattr(module, "HUGE", huge)
    # Nine columns of 8 bits do not fit 64.
    records = Records("wide", n=150, leaves=[150] * 9, **kind)
    rollup = Rollup(records.table, room=room)
    assert rollup.layout.n_words == 2
    rng = random.Random(room)
    lowered = [tuple(min(level, rng.randint(0, 2)) for level in node) for node in records.nodes(rng, 10)]
    for node in [*records.nodes(rng, 10), *lowered, (0,) * 9]:
        records.assert_equal(rollup.at(node), node)


def test_a_table_that_was_forgotten_is_derived_again():
    records = Records("again", n=80, leaves=[9, 8], sensitive=True, entities=False)
    tiny = Rollup(records.table, room=1)
    nodes = records.nodes(random.Random(1), 8)
    for node in [*nodes, *reversed(nodes), *nodes]:
        records.assert_equal(tiny.at(node), node)


def test_a_table_that_is_remembered_is_the_same_object():
    records = Records("same", n=80, leaves=[9, 8], sensitive=False, entities=False)
    rollup = Rollup(records.table)
    top = tuple(h.height for h in records.hierarchies)
    assert rollup.at(top) is rollup.at(top)
    assert rollup.at((0, 0)) is rollup.at((0, 0))


def test_coarser_nodes_lie_above_and_come_coarsest_first(monkeypatch):
    records = Records("coarser", n=200, leaves=[12, 9, 7], sensitive=False, entities=False)
    rollup = Rollup(records.table)
    nodes = list(Lattice(tuple(h.height for h in records.hierarchies)))
    assert not any(list(rollup.coarser(node)) for node in nodes)  # nothing is huge
    monkeypatch.setattr(module, "HUGE", 50)
    monkeypatch.setattr(module, "COARSER", (0.0, 1.0))
    some = [(node, list(rollup.coarser(node))) for node in nodes]
    assert any(len(found) > 1 for _, found in some)
    for node, found in some:
        for coarse, finer in itertools.pairwise([*found, node]):
            assert below(finer, coarse)
            assert len(rollup.at(coarse).counts) <= len(records.table.counts)
    monkeypatch.setattr(module, "COARSER", (0.0, 0.0))
    assert not any(list(rollup.coarser(node)) for node in nodes)


def test_the_ground_is_grouped_where_level_0_joins_leaves():
    joined = Hierarchy.from_levels("c", ["1", "2", "3"], [["1-2", "1-2", "3"], ["*"] * 3])
    table, _ = count_records(("c",), np.array([[0], [1], [2], [1]], np.int32), {}, None, (joined,))
    ground = Rollup(table).at((0,))
    assert table.n_classes == 3
    assert sorted(ground.counts.tolist()) == [1, 3]


@pytest.mark.parametrize("cardinalities", [[1], [2, 1, 3], [2**31] * 3, [256] * 8, [256] * 9, [2**20, 2**30, 2**20]])
def test_packing_loses_nothing(cardinalities):
    rng = random.Random(str(cardinalities))
    rows = [[rng.choice([0, size - 1, rng.randrange(size)]) for size in cardinalities] for _ in range(50)]
    codes = np.array(rows, np.int64).astype(np.int32)
    layout = KeyLayout(cardinalities)
    assert layout.codes(layout.packed(codes)).tolist() == rows
    bits = sum(max(1, (size - 1).bit_length()) for size in cardinalities)
    assert layout.n_words >= -(-bits // 64)
