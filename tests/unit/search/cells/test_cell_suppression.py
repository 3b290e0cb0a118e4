"""Suppressing records, columns and cells: what is said, what is refused, what is kept in mind."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InfeasibleError, PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells import cell_suppression
from shoal.search.cells.cell_suppression import cheapest
from shoal.search.cells.classes import Partition
from shoal.search.cells.released_matches import FAR, _prices, count_matched, differences, rehide, restore
from shoal.search.problem import Terms
from shoal.tables.frequency import count_records

K2 = {"model": "k-anonymity", "k": 2}


def policy(names, *require, columns=None, **release):
    fields = {name: {"role": "quasi", **(columns or {}).get(name, {})} for name in names}
    return shoal.Policy.of({"columns": fields, "require": list(require) or [K2], "release": release})


def table(text, names="abcdefghij"):
    """Rows of letters; a dot is a null."""
    rows = text.split()
    columns = zip(*([None if c == "." else c for c in row] for row in rows), strict=True)
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=False)})


def release(text, *require, columns=None, **options):
    data = table(text)
    return shoal.anonymize(data, policy(data.column_names, *require, columns=columns, shuffle=False, **options))


def rows(found):
    return ["".join("." if v is None else v for v in row.values()) for row in found.table.to_pylist()]


# --- records -----------------------------------------------------------------------------------------------------


def test_only_classes_that_fail_are_suppressed():
    found = release("xx xx xy yy yy yy", algorithm="suppress_records", max_suppression=0.5)
    assert rows(found) == ["xx", "xx", "yy", "yy", "yy"]
    assert found.recoding.proved
    assert found.recoding.claim == "no fewer records can be suppressed"


def test_stars_that_are_no_class_take_the_smallest_class_with_them():
    options = {"algorithm": "suppress_records", "max_suppression": 0.6, "suppressed": "keep"}
    found = release("xx xx xy yy yy yy", **options)
    assert rows(found) == ["**", "**", "**", "yy", "yy", "yy"]
    assert found.suppressed == 3
    with pytest.raises(
        InfeasibleError, match="1 records must be suppressed, but neither they alone nor with others, at most 2"
    ):
        release("xx xx xy yy yy yy", **(options | {"max_suppression": 0.4}))


def test_stars_take_a_class_that_mends_them_not_the_smallest():
    records = ["xs", "xs", "xs", "ys", "yt", "zt", "zt", "zu", "zu"]
    data = pa.table({"a": [r[0] for r in records], "s": [r[1] for r in records]})
    asked = {
        "columns": {"a": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "alpha-k-anonymity", "alpha": 0.5, "k": 2}],
        "release": {"algorithm": "suppress_records", "suppressed": "keep", "max_suppression": 0.8, "shuffle": False},
    }
    found = shoal.anonymize(data, shoal.Policy.of(asked))
    assert found.table["a"].to_pylist() == ["*", "*", "*", "y", "y", "*", "*", "*", "*"]
    assert found.recoding.claim.startswith("no fewer records")


def test_too_many_records_fail():
    with pytest.raises(InfeasibleError, match="1 of 6 records fail, but at most 0 may be") as caught:
        release("xx xx xy yy yy yy", algorithm="suppress_records")
    assert "optimal" in caught.value.hint
    with pytest.raises(InfeasibleError, match="3 of 3 records fail, but at most 2 may be"):
        release("xx xy yy", algorithm="suppress_records", max_suppression=1.0)


def test_nulls_that_match_anything_and_whom_they_back():
    found = release("xx x. yy", algorithm="suppress_records", nulls="wildcard", max_suppression=0.5)
    assert rows(found) == ["xx", "x."]


# --- columns -----------------------------------------------------------------------------------------------------


def test_the_cheapest_set_of_columns_is_hidden():
    text = "xxx xxy yxz yxx yyx"
    found = release(text, algorithm="suppress_columns")
    assert found.levels == {"a": 0, "b": 1, "c": 1}
    heavy = release(text, algorithm="suppress_columns", columns={"b": {"weight": 9.0}}, max_suppression=0.2)
    assert heavy.levels == {"a": 0, "b": 0, "c": 1}
    assert heavy.suppressed == 1


def test_columns_between_whose_levels_nothing_is_chosen():
    data = pa.table({"zip": ["11", "12", "21", "22"], "sex": ["f", "f", "m", "m"]})
    asked = policy(["zip", "sex"], columns={"zip": {"hierarchy": {"mask": "right"}}}, algorithm="suppress_columns")
    found = shoal.anonymize(data, asked)
    assert found.levels == {"zip": 2, "sex": 0}
    assert found.recoding.proved


def test_a_column_that_max_level_keeps_from_its_top_is_not_hidden():
    data = pa.table({"zip": ["11", "12", "21", "22"], "sex": ["f", "m", "m", "f"]})
    columns = {"zip": {"hierarchy": {"mask": "right"}, "max_level": 1}}
    with pytest.raises(InfeasibleError, match="hiding whole columns among zip, sex"):
        shoal.anonymize(data, policy(["zip", "sex"], columns=columns, algorithm="suppress_columns"))


def test_twenty_columns_are_no_matter():
    rng = np.random.default_rng(0)
    data = pa.table({f"c{j}": rng.choice(list("abcd"[: 2 + j % 3]), 300) for j in range(20)})
    found = shoal.anonymize(data, policy(data.column_names, algorithm="suppress_columns"))
    assert found.recoding.proved
    assert found.recoding.n_evaluated < found.recoding.n_nodes / 10


# --- cells -------------------------------------------------------------------------------------------------------


def test_one_cell_where_one_suffices():
    found = release("xx xx xx xy", algorithm="suppress_cells", nulls="wildcard")
    assert rows(found) == ["xx", "xx", "xx", "x."]
    assert found.recoding.claim.startswith("1 cells are suppressed, and no fewer can be where no record counts")
    stars = release("xx xx xx xy", algorithm="suppress_cells")
    assert sorted(rows(stars)) == ["x*", "x*", "xx", "xx"]
    assert stars.recoding.claim == "2 cells are suppressed, and no fewer can be"
    assert stars.loss["loss"] == pytest.approx(2 / 8)
    assert stars.suppressed == 0


def test_weights_decide_which_cells():
    columns = {"a": {"weight": 5.0}}
    assert rows(release("xx xy yx yy", algorithm="suppress_cells", columns=columns)) == ["x*", "x*", "y*", "y*"]
    columns = {"b": {"weight": 5.0}}
    found = release("xx xy yx yy", algorithm="suppress_cells", columns=columns)
    assert rows(found) == ["*x", "*y", "*x", "*y"]
    assert found.recoding.claim == "4 cells, weighted by column, are suppressed, and no fewer can be"


def test_a_null_of_the_data_is_no_hidden_cell():
    found = release("x. xx yy yy", algorithm="suppress_cells", nulls="wildcard")
    assert rows(found) == ["x.", "xx", "yy", "yy"]
    assert found.loss["loss"] == 0
    found = release("x. xx yy yy", algorithm="suppress_cells")
    assert rows(found) == ["x*", "x*", "yy", "yy"]


def test_a_hidden_cell_and_a_null_of_the_data_are_one_class_where_both_are_nulls():
    found = release("x. xy xz xz xz", {"model": "k-anonymity", "k": 3}, algorithm="suppress_cells", nulls="wildcard")
    sizes = [rows(found).count(row) for row in set(rows(found))]
    assert rows(found).count("x.") > 1  # one that was null, and others that were made so
    assert found.loss["average-class"] == 5 / len(sizes)
    assert found.loss["discernibility"] == sum(size**2 for size in sizes)


def test_k_minus_one_records_of_nulls_do_not_cover_for_unique_ones():
    """By the letter two cells would do: everybody matches a record of nulls alone."""
    found = release("xu yv zw tp", algorithm="suppress_cells", nulls="wildcard")
    assert rows(found) == ["..", "..", "..", ".."]


def test_records_that_match_as_released_hide_one_cell_each_and_the_claim_counts_them():
    found = release("xu yv zw tp", algorithm="suppress_cells", nulls="wildcard", matches="released")
    assert sorted(row.count(".") for row in rows(found)) == [1, 1, 1, 1]
    assert found.recoding.claim == (
        "4 cells are suppressed, and no fewer can be where every record that matched too few hides one; "
        "4 records count on what others hide"
    )
    assert not found.recoding.proved
    again = release("xu yv zw tp", algorithm="suppress_cells", nulls="wildcard", matches="released")
    assert again.table == found.table


def test_a_record_counts_on_others_only_if_that_saves_a_cell():
    words = "xx xx xx xy"
    found = release(words, algorithm="suppress_cells", nulls="wildcard", matches="released")
    assert rows(found) == rows(release(words, algorithm="suppress_cells", nulls="wildcard"))
    assert found.recoding.claim.endswith("; 0 records count on what others hide")


def test_matches_among_released_records_are_for_k_anonymity_alone():
    data = table("xxs xyt yys", "abs")
    fields = {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "s": {"role": "sensitive"}}
    asked = {
        "columns": fields,
        "require": [{"model": "distinct-l-diversity", "l": 2}],
        "release": {"algorithm": "suppress_cells", "nulls": "wildcard", "matches": "released"},
    }
    with pytest.raises(PolicyError, match="k-anonymity alone"):
        shoal.anonymize(data, shoal.Policy.of(asked))


@pytest.mark.parametrize("n_columns", [5, 14])
def test_rows_keep_exact_counts_of_their_matches_while_they_choose(n_columns):
    """The compiled loops against NumPy, also where rows choose among some of the columns only."""
    rng = np.random.default_rng(n_columns)
    codes = rng.integers(-1, 3, (60, n_columns)).astype(np.int32)
    codes[:, 5:] = np.minimum(codes[:, 5:], 0)
    counts = rng.integers(1, 4, 60)
    weights = rng.choice([1.0, 2.0], 12 if n_columns > 12 else n_columns)
    prices = _prices(weights)
    start = rng.integers(1, len(prices), 60)
    start[:3] |= np.int64(1) << (n_columns - 1)
    at_risk = rng.random(60) < 0.7
    near = start & (FAR - 1)
    hides = near.copy()
    chosen = np.flatnonzero(at_risk & (start < len(prices)))
    apart, place = differences(codes, np.flatnonzero(at_risk), start), np.cumsum(at_risk) - 1
    barred = ((codes < 0) * (np.int64(1) << np.arange(n_columns))).sum(axis=1)

    def by_definition():
        bits = ((hides + start - near)[:, None] >> np.arange(n_columns)) & 1 == 1
        shown = np.where(bits, -1, codes)
        alike = (shown[:, None] == shown[None]) | (shown[:, None] < 0) | (shown[None] < 0)
        return np.where(at_risk, alike.all(axis=2) @ counts, 0)

    matched = count_matched(apart, counts, hides, at_risk)
    np.testing.assert_array_equal(matched, by_definition())
    for penalty in (0.1, 1.6):
        rehide(
            apart, place, counts, 9, prices, 0 * prices, near, barred, at_risk, hides, matched, chosen, penalty, 0.01
        )
        np.testing.assert_array_equal(matched[at_risk], by_definition()[at_risk])
        assert (prices[hides[chosen]] <= prices[start[chosen]]).all()
        assert not (hides[chosen] & barred[chosen]).any()  # a null of the data is not hidden
    assert (hides[chosen] != near[chosen]).any()
    before = hides.copy()
    low = matched < 9
    restore(apart, place, counts, 9, prices, near, at_risk, hides, matched, chosen)
    np.testing.assert_array_equal(matched[at_risk], by_definition()[at_risk])
    if n_columns == 5:  # with more to choose from, all rows found something cheaper, and there is nothing to restore
        assert (hides != before).any()
    fixed = at_risk & (hides == before)
    assert not (fixed & ~low & (matched < 9)).any()  # nobody loses a match that is needed


@pytest.mark.parametrize(
    ("require", "columns", "reason"),
    [
        ([{"model": "k-anonymity", "k": 2, "columns": ["a"]}], {}, "sets of columns"),
        ([K2], {"b": {"after": "a"}}, "does not support after"),
        ([K2], {"a": {"hierarchy": {"mask": "right"}, "max_level": 0}}, "max_level"),
    ],
)
@pytest.mark.parametrize("nulls", ["category", "wildcard"])
def test_what_cells_cannot_honour_is_refused(require, columns, reason, nulls):
    with pytest.raises(PolicyError, match=reason):
        release("xx xy yy", *require, columns=columns, algorithm="suppress_cells", nulls=nulls)


def test_convex_models_are_refused_where_nulls_match_anything():
    data = table("xxs xyt yys", "abs")
    fields = {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "s": {"role": "sensitive"}}
    asked = {
        "columns": fields,
        "require": [{"model": "t-closeness", "t": 0.5}],
        "release": {"algorithm": "suppress_cells", "nulls": "wildcard"},
    }
    with pytest.raises(PolicyError, match="still when it matches more"):
        shoal.anonymize(data, shoal.Policy.of(asked))


@pytest.mark.parametrize("algorithm", ["suppress_cells", "local_suppression"])
@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_all_records_as_one_class_fail(algorithm, limit):
    data = table("xxs xyt yys yxs xxs", "abs")
    fields = {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "s": {"role": "sensitive"}}
    asked = {
        "columns": fields,
        "require": [{"model": "entropy-l-diversity", "l": 1.9}],
        "release": {"algorithm": algorithm, "max_suppression": limit},
    }
    with pytest.raises(InfeasibleError, match="all 5 records as one class fail" if limit else "no generalization"):
        shoal.anonymize(data, shoal.Policy.of(asked))


def many(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {name: rng.choice(list("abcdefg"), n, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.03, 0.02]) for name in "abcde"}
    )


def test_a_larger_table_gets_a_bound_and_the_same_answer_again(monkeypatch):
    monkeypatch.setattr(cell_suppression, "ROUNDS", 8)
    data = many()
    asked = policy(data.column_names, {"model": "k-anonymity", "k": 3}, algorithm="suppress_cells")
    first, second = (shoal.anonymize(data, asked) for _ in range(2))
    assert first.table == second.table
    recoding = first.recoding
    assert not recoding.proved
    assert recoding.claim.startswith("at least ")
    n_cells = round(first.loss["loss"] * data.num_rows * 5)
    assert recoding.claim.endswith(f"; this suppresses {n_cells}")
    assert 0 < recoding.bound < first.loss["loss"]
    stars = sum(row.count("*") for row in rows(first))
    assert stars == n_cells


def test_out_of_time_there_is_still_an_answer():
    data = many()
    for algorithm in ("suppress_cells", "local_suppression", "genetic", "annealing"):
        found = shoal.anonymize(data, policy(data.column_names, algorithm=algorithm, time_budget=1e-9))
        assert found.measured["k"] >= 2


def test_many_columns_are_bounded_by_what_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(cell_suppression, "ROUNDS", 3)
    rng = np.random.default_rng(1)
    data = pa.table({f"c{j}": rng.choice(list("ab"), 30) for j in range(11)})
    found = shoal.anonymize(data, policy(data.column_names, algorithm="suppress_cells"))
    assert found.recoding.bound <= found.loss["loss"]
    wild = shoal.anonymize(data, policy(data.column_names, algorithm="suppress_cells", nulls="wildcard"))
    assert wild.loss["loss"] <= found.loss["loss"]


def test_sets_of_columns_come_in_the_order_of_their_weight():
    weights = np.array([2.0, 1.0, 3.5, 1.0])
    found = list(cheapest(weights, 100))
    assert len(found) == 16
    assert len({pattern.tobytes() for pattern in found}) == 16
    sums = [float(weights[pattern].sum()) for pattern in found]
    assert sums == sorted(sums)
    assert len(list(cheapest(weights, 5))) == 5


def test_a_top_from_the_start_is_a_star_that_costs_nothing():
    data = pa.table({"a": ["x", "y", "?", "x"], "b": ["u", "u", "u", "u"]})
    columns = {"a": {"hierarchy": {"tree": {"*": ["x", "y"]}}, "uncovered": "suppress"}}
    found = shoal.anonymize(data, policy(["a", "b"], columns=columns, algorithm="suppress_cells", shuffle=False))
    assert found.table["a"].to_pylist() == ["x", "*", "*", "x"]
    assert found.recoding.claim == "1 cells are suppressed, and no fewer can be"


# --- cells on top of levels, and cuts by chance ------------------------------------------------------------------


def test_levels_and_hidden_cells_are_weighed_against_each_other():
    zips = ["11", "11", "12", "12", "21", "21", "22", "23", "31"]
    data = pa.table({"zip": zips, "sex": ["f"] * 9})
    columns = {"zip": {"hierarchy": {"mask": "right"}}}
    found = shoal.anonymize(data, policy(["zip", "sex"], columns=columns, algorithm="local_suppression"))
    assert found.suppressed == 0
    assert set(found.levels.values()) == {None}
    best = shoal.anonymize(data, policy(["zip", "sex"], columns=columns, algorithm="optimal"))
    assert found.loss["loss"] < best.loss["loss"]


@pytest.mark.parametrize("algorithm", ["genetic", "annealing"])
def test_rare_values_are_joined_and_frequent_ones_are_not(algorithm):
    rng = np.random.default_rng(3)
    zips = ["11", "12", "13", "21", "22", "23"]
    data = pa.table({name: rng.choice(zips, 60, p=[0.47, 0.02, 0.02, 0.02, 0.02, 0.45]) for name in "ab"})
    columns = {name: {"hierarchy": {"mask": "right"}} for name in "ab"}
    losses, tables = {}, []
    for name in (algorithm, algorithm, "optimal", "datafly"):
        asked = policy("ab", {"model": "k-anonymity", "k": 4}, columns=columns, algorithm=name, max_suppression=0.05)
        found = shoal.anonymize(data, asked)
        losses[name] = found.loss["loss"]
        tables.append(found.table)
    assert tables[0] == tables[1]
    assert losses[algorithm] < losses["optimal"] <= losses["datafly"]


# --- loops that do less ------------------------------------------------------------------------------------------


def hideable(seed, n=40, q=4, *, weights=None):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, q)).astype(np.int32)
    hierarchies = tuple(Hierarchy.from_paths(f"c{j}", [(str(i), "*") for i in range(4)]) for j in range(q))
    counted, _ = count_records(tuple(h.column for h in hierarchies), codes, {}, None, hierarchies, separately=True)
    problem = Problem(counted, (KAnonymity(k=3),), Terms(seed=seed))
    costs = np.tile(weights or np.ones(q), (counted.n_classes, 1))
    return cell_suppression.HideableCells.of(problem, costs)


@pytest.mark.parametrize("seed", range(6))
def test_groups_under_a_pattern_are_those_of_the_shown_columns(seed):
    cells = hideable(seed)
    assert cells._words is not None
    rng = np.random.default_rng(seed)
    for pattern in cells.patterns:
        rows = np.flatnonzero(rng.random(len(cells.counts)) < 0.7)
        class_of, n_classes = cells.groups(pattern, rows)
        shown = [tuple(of) for of in cells.codes[rows][:, ~pattern].tolist()]
        numbers = {of: i for i, of in enumerate(dict.fromkeys(shown))}
        assert class_of.tolist() == [numbers[of] for of in shown]
        assert n_classes == len(numbers)


def test_a_word_may_be_too_short_for_all_columns():
    wide = hideable(0, 30, 33)
    narrow = replace(wide, codes=wide.codes[:, :4])
    assert wide._words is None
    pattern = np.arange(33) >= 4
    assert wide.groups(pattern, np.arange(9))[0].tolist() == narrow.groups(pattern[:4], np.arange(9))[0].tolist()


def improved_step_by_step(cells, k, partition):
    """Every round sees the whole table anew."""
    rng = np.random.default_rng(cells.problem.terms.seed)
    for _ in range(cell_suppression.ROUNDS):
        spread = cell_suppression._spread(cells, partition)
        costly = np.flatnonzero(spread[partition.class_of].any(axis=1))
        if not len(costly):
            break
        chosen = cell_suppression._around(cells, partition, int(rng.choice(costly)), rng)
        inside = np.isin(partition.class_of, np.flatnonzero(chosen))
        rows, place = np.unique(partition.row[inside], return_inverse=True)
        counts = np.bincount(place, weights=partition.counts[inside]).astype(np.int64)
        few = replace(cells, codes=cells.codes[rows], costs=cells.costs[rows], counts=counts)
        patterns = cell_suppression._pairwise(few.codes, spread[partition.class_of[inside]])
        solved, _ = cell_suppression.exact(few, k, patterns, cell_suppression.BRANCHES // 10)
        hidden = (spread[partition.class_of] * cells.costs[partition.row]).sum(axis=1)
        before = (partition.counts * hidden)[inside].sum()
        if solved is not None and cell_suppression.cost_of(few, solved) <= before + 1e-9:
            class_of = np.append(partition.class_of[~inside], solved.class_of + partition.n_classes)
            partition = Partition(
                np.append(partition.row[~inside], rows[solved.row]),
                np.append(partition.counts[~inside], solved.counts),
                np.unique(class_of, return_inverse=True)[1],
            )
    return partition


@pytest.mark.parametrize("seed", range(3))
def test_a_round_changes_only_what_it_dissolved(seed, monkeypatch):
    monkeypatch.setattr(cell_suppression, "ROUNDS", 12)
    cells = hideable(seed, 90, weights=[1.0, 0.3, 2.0, 0.7])
    start = cell_suppression.covered(cells)
    found = cell_suppression.improve_classes(cells, 3, start)
    expected = improved_step_by_step(cells, 3, start)
    for part in ("row", "counts", "class_of"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("m", [1, 5, 30, 200])
def test_the_least_are_the_first_of_a_stable_order(m):
    values = np.random.default_rng(m).integers(0, 9, 100) / 2
    assert cell_suppression._smallest_distances(values, m).tolist() == np.argsort(values, kind="stable")[:m].tolist()


def test_nothing_is_suppressed_where_only_attacks_are_limited() -> None:
    found = release("ab ab ac ac", {"model": "linkage-risk", "max": 1.0}, algorithm="suppress_cells")
    assert found.suppressed == 0
    assert sorted(found.table["b"].to_pylist()) == list("bbcc")
