"""What every release obeys, counted in plain Python on the rows that came out."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from definitions import Case, Sensitive, compatible, passes
from examples import examples
from shoal.errors import InfeasibleError, MissingValueError
from strategies import SENSITIVE_PATHS, requirements

EXAMPLES = examples(60)
FEW = examples(20)

HIERARCHIES = {
    "age": {"intervals": [5, 10, 40]},
    "zip": {"mask": "right"},
    "job": {"tree": {"*": {"made": ["baker", "smith"], "told": ["bard"]}}},
}
VALUES = {
    "age": ["03", "17", "18", "39", "71"],
    "zip": ["02138", "02139", "0214", "94"],
    "job": ["baker", "smith", "bard"],
}
# Kinds that small tables meet often enough.
KINDS = ("k", "p", "distinct", "entropy", "recursive", "equal", "ordered", "hierarchical", "alpha", "beta")


@st.composite
def asked(draw):
    """A frame with a serial number that is kept, and a policy for it."""
    quasi = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True))
    n = draw(st.integers(1, 12))
    nulls = draw(st.sampled_from(["category", "wildcard", "forbid"]))
    missing = [] if nulls == "forbid" else [None]
    cells = {name: draw(st.lists(st.sampled_from(VALUES[name] + missing), min_size=n, max_size=n)) for name in quasi}
    illness = draw(st.lists(st.sampled_from([*SENSITIVE_PATHS, *missing]), min_size=n, max_size=n))
    people = draw(st.lists(st.integers(1, 8).map("person {}".format), min_size=n, max_size=n))
    frame = pd.DataFrame(
        {"name": people, **cells, "illness": illness, "serial": [f"{i:02}" for i in range(n)]}, dtype="str"
    )
    tree = {"tree": {"any": {"many": ["30", "11"], "few": ["4", "2"]}}}
    fields = {
        "columns": {
            "name": {"role": "identifier"},
            **{name: {"role": "quasi", "hierarchy": HIERARCHIES[name]} for name in quasi},
            "illness": {"role": "sensitive", "hierarchy": tree},
            "serial": {"role": "plain"},
        },
        "require": [
            dict(draw(requirements(kind, ["illness"])))
            for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
        ],
        "release": {
            "max_suppression": draw(st.sampled_from([0, 0.2, 0.5, 1])),
            "objective": draw(st.sampled_from(["loss", "discernibility", "height"])),
            "nulls": nulls,
            "suppressed": draw(st.sampled_from(["drop", "keep"])) if nulls != "wildcard" else "drop",
            "seed": draw(st.integers(0, 3)),
        },
    }
    if nulls != "wildcard" and draw(st.integers(0, 3)) == 0:
        fields["release"]["entity"] = "name"
    return frame, fields


def released(frame, fields):
    """The release, or None where there is none."""
    try:
        return shoal.anonymize(frame, shoal.Policy.of(fields))
    except InfeasibleError:
        return None


def rows_of(frame):
    """Rows as tuples, None for every kind of null."""
    columns = [[None if pd.isna(value) else value for value in frame[name]] for name in frame.columns]
    return list(zip(*columns, strict=True))


def as_case(frame, fields):
    """The original records, as the definitions see them: what a released class is compared with."""
    values = tuple(None if pd.isna(value) else value for value in frame["illness"])
    paths = {
        **{value: (value, "many" if value in ("30", "11") else "few", "any") for value in SENSITIVE_PATHS},
        None: (None, None, "any"),
    }
    column = Sensitive("illness", values, ("30", "11", "4", "2", None), paths)
    persons = tuple(frame["name"]) if "entity" in fields["release"] else None
    return Case((), ((),) * len(frame), tuple(fields["require"]), {"illness": column}, persons)


@EXAMPLES
@given(asked())
def test_every_class_of_the_released_rows_satisfies_every_requirement(given_):
    frame, fields = given_
    release = released(frame, fields)
    if release is None:
        return
    case = as_case(frame, fields)
    quasi = [name for name in frame.columns if name in HIERARCHIES]
    tuples = dict(zip(map(int, release.table["serial"]), rows_of(release.table[quasi]), strict=True))
    for mine in set(tuples.values()):
        if fields["release"]["nulls"] == "wildcard":
            E = [i for i, other in tuples.items() if compatible(mine, other)]
        else:
            E = [i for i, other in tuples.items() if other == mine]
        for model in case.asked:
            assert passes(case, model, E), (model, mine)


@EXAMPLES
@given(asked())
def test_rows_and_columns_are_those_promised(given_):
    frame, fields = given_
    release = released(frame, fields)
    if release is None:
        return
    options = fields["release"]
    assert list(release.table.columns) == [name for name in frame.columns if name != "name"]
    gone = release.suppressed if options["suppressed"] == "drop" else 0
    assert len(release.table) == len(frame) - gone
    assert release.suppressed <= options["max_suppression"] * len(frame)
    assert isinstance(release.table, pd.DataFrame)
    # Nobody's other columns change, and a kept suppressed record is all stars.
    illness = dict(zip(frame["serial"], rows_of(frame[["illness"]]), strict=True))
    after = zip(release.table["serial"], rows_of(release.table[["illness"]]), strict=True)
    assert all(illness[serial] == value for serial, value in after)
    quasi = [name for name in frame.columns if name in HIERARCHIES]
    stars = sum(set(row) == {"*"} for row in rows_of(release.table[quasi]))
    if (
        options["suppressed"] == "keep"
        and "zip" not in quasi
        and any(release.levels[name] < release.recoding.hierarchies[j].height for j, name in enumerate(quasi))
    ):
        assert stars == release.suppressed


@EXAMPLES
@given(asked())
def test_every_released_cell_is_true_of_the_record_it_stands_for(given_):
    frame, fields = given_
    release = released(frame, fields)
    if release is None:
        return
    original = dict(zip(frame["serial"], frame.to_dict("records"), strict=True))
    for row in release.table.to_dict("records"):
        for name in HIERARCHIES.keys() & row.keys():
            was, now = original[row["serial"]][name], row[name]
            assert true_of(name, None if pd.isna(was) else was, None if pd.isna(now) else now)


def true_of(name, was, now):
    """Whether a released value, read as anyone would read it, holds the original one."""
    if now == "*" or was is None:
        return now in (None, "*") or set(now) == {"*"}
    if now == was:
        return True
    if name == "age":
        low, _, high = now.partition("-")
        return int(low) <= int(was) <= int(high)
    if name == "zip":
        return len(now) >= len(was) and all(a in ("*", b) for a, b in zip(now, was.ljust(len(now)), strict=True))
    return was in {"made": ["baker", "smith"], "told": ["bard"]}[now]


@FEW
@given(asked(), st.randoms(use_true_random=False))
def test_order_and_index_of_a_frame_do_not_matter(given_, random):
    frame, fields = given_
    release = released(frame, fields)
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = frame.iloc[order]
    others = {
        "shuffled": shuffled,
        "filtered": pd.concat([frame, frame.assign(serial="none")])[lambda f: f["serial"] != "none"],
        "string index": shuffled.set_axis([f"row {i}" for i in order]),
        "one label for all": shuffled.set_axis([0] * len(frame)),
    }
    for way, other in others.items():
        again = released(other, fields)
        if release is None:
            assert again is None, way
            continue
        assert rows_of(again.table) == rows_of(release.table), way
        assert again.levels == release.levels
        assert again.loss == pytest.approx(dict(release.loss))


@FEW
@given(asked())
def test_without_shuffling_the_order_stays_and_with_another_seed_only_the_order_changes(given_):
    frame, fields = given_
    release = released(frame, fields)
    if release is None:
        return
    kept = released(frame, {**fields, "release": {**fields["release"], "shuffle": False}})
    assert list(kept.table["serial"]) == sorted(kept.table["serial"])
    other = released(frame, {**fields, "release": {**fields["release"], "seed": 77}})
    as_texts = [sorted(map(str, rows_of(r.table))) for r in (release, kept, other)]
    assert as_texts[0] == as_texts[1] == as_texts[2]


@FEW
@given(asked())
def test_a_release_passes_the_check_of_its_own_policy_and_the_input_is_untouched(given_):
    frame, fields = given_
    before = frame.copy(deep=True)
    release = released(frame, fields)
    pd.testing.assert_frame_equal(frame, before)
    if release is not None and "entity" not in fields["release"]:
        assert shoal.check(release.table, shoal.Policy.of(fields), original=frame).holds


@EXAMPLES
@given(asked(), st.randoms(use_true_random=False))
def test_figures_do_not_depend_on_the_order_of_rows_or_the_names_of_values(given_, random):
    frame, _ = given_
    quasi = [name for name in frame.columns if name in HIERARCHIES]
    order = list(range(len(frame)))
    random.shuffle(order)
    renamed = frame.iloc[order].copy()
    for name in (*quasi, "illness"):
        values = sorted(set(frame[name].dropna()))
        renamed[name] = renamed[name].map(dict(zip(values, random.sample("qwertzuiop", len(values)), strict=True)))
    ways = [shoal.measure(data, quasi=quasi, sensitive=["illness"]) for data in (frame, renamed)]
    assert dict(ways[0]) == pytest.approx(dict(ways[1]))


# --- edges, each with the one right answer -------------------------------------------------------------------------


def policy(k, *quasi, **release):
    columns = {name: {"role": "quasi"} for name in quasi or ["q"]}
    return shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": k}], "release": release})


def texts(**columns):
    return pd.DataFrame(columns, dtype="str")


def test_one_row_is_its_own_class_at_k_one():
    release = shoal.anonymize(texts(q=["a"]), policy(1))
    assert rows_of(release.table) == [("a",)]
    assert release.measured["k"] == 1


@pytest.mark.parametrize("limit", [0, 0.5, 1])
def test_one_row_has_no_crowd_at_k_two_however_much_may_be_suppressed(limit):
    with pytest.raises(InfeasibleError):
        shoal.anonymize(texts(q=["a"]), policy(2, max_suppression=limit))


def test_equal_rows_are_released_as_they_are():
    release = shoal.anonymize(texts(q=["a"] * 5, r=["b"] * 5), policy(5, "q", "r"))
    assert rows_of(release.table) == [("a", "b")] * 5
    assert release.levels == {"q": 0, "r": 0}
    assert release.loss["loss"] == 0


def test_at_k_one_nothing_is_lost():
    frame = texts(q=["a", "b", "c", "c"])
    release = shoal.anonymize(frame, policy(1))
    assert sorted(rows_of(release.table)) == rows_of(frame)
    assert release.loss["loss"] == 0


def test_at_k_equal_to_the_table_all_columns_are_stars():
    release = shoal.anonymize(texts(q=["a", "b", "c"], r=["x", "x", "y"]), policy(3, "q", "r"))
    assert rows_of(release.table) == [("*", "*")] * 3
    assert release.loss["loss"] == 1


@pytest.mark.parametrize("nulls", ["category", "wildcard", "forbid"])
@pytest.mark.parametrize("limit", [0, 1])
def test_a_k_beyond_the_table_is_infeasible(nulls, limit):
    with pytest.raises(InfeasibleError):
        shoal.anonymize(texts(q=["a", "b", "b"]), policy(4, nulls=nulls, max_suppression=limit))


ONE_NULL = {"q": ["a", "a", None]}


def test_a_null_as_a_category_is_alone_and_forces_the_top():
    release = shoal.anonymize(texts(**ONE_NULL), policy(2))
    assert rows_of(release.table) == [("*",)] * 3


def test_a_null_as_a_category_may_be_suppressed():
    release = shoal.anonymize(texts(**ONE_NULL), policy(2, max_suppression=0.4))
    assert rows_of(release.table) == [("a",)] * 2
    assert release.suppressed == 1


def test_a_null_as_a_wildcard_is_in_every_crowd():
    release = shoal.anonymize(texts(**ONE_NULL), policy(2, nulls="wildcard"))
    assert sorted(map(str, rows_of(release.table))) == ["('a',)", "('a',)", "(None,)"]
    assert release.loss["loss"] == 0


def test_a_null_as_a_wildcard_backs_two_records_that_differ():
    frame = texts(q=["a", "b", None])
    assert shoal.anonymize(frame, policy(2, nulls="wildcard")).levels == {"q": 0}
    assert shoal.anonymize(frame, policy(3, nulls="wildcard")).levels == {"q": 1}


def test_who_is_suppressed_no_longer_backs_others():
    # At k = 3 the null has a and b for company, but each of these has the null alone: they go, and then so must it.
    frame = texts(q=["a", None, "b", "c", "c", "c"], r=["x", "x", "x", "y", "y", "y"])
    asked_for = {"nulls": "wildcard", "objective": "height"}
    release = shoal.anonymize(frame, policy(3, "q", "r", max_suppression=0.5, **asked_for))
    assert rows_of(release.table) == [("c", "y")] * 3
    assert release.suppressed == 3
    release = shoal.anonymize(frame, policy(3, "q", "r", max_suppression=0.34, **asked_for))
    assert (release.levels, release.suppressed) == ({"q": 0, "r": 1}, 2)  # now c keeps the null company
    release = shoal.anonymize(frame, policy(3, "q", "r", **asked_for))
    assert (release.levels, release.suppressed) == ({"q": 1, "r": 0}, 0)


@pytest.mark.parametrize("frame", [ONE_NULL, {"q": [None]}, {"q": [None, None]}])
def test_a_forbidden_null_is_an_error_that_names_the_column(frame):
    with pytest.raises(MissingValueError, match="'q'"):
        shoal.anonymize(texts(**frame), policy(1, nulls="forbid"))


@pytest.mark.parametrize("nulls", ["category", "wildcard"])
def test_rows_of_nulls_only_are_equal_to_each_other(nulls):
    frame = texts(q=[None, None], r=[None, None])
    release = shoal.anonymize(frame, policy(2, "q", "r", nulls=nulls))
    assert rows_of(release.table) == [(None, None)] * 2
    assert release.levels == {"q": 0, "r": 0}


def test_one_row_of_nulls_among_others_is_a_category_of_its_own():
    frame = texts(q=["a", "a", None], r=["x", "x", None])
    assert shoal.anonymize(frame, policy(2, "q", "r")).classes == 1
    assert shoal.anonymize(frame, policy(2, "q", "r", max_suppression=0.4)).suppressed == 1


def test_one_row_of_nulls_is_compatible_with_everybody():
    frame = texts(q=["a", "b", None], r=["x", "y", None])
    release = shoal.anonymize(frame, policy(2, "q", "r", nulls="wildcard"))
    assert release.levels == {"q": 0, "r": 0}
    assert release.classes == 3


def test_a_column_of_nulls_beside_a_column_of_values_costs_nothing():
    release = shoal.anonymize(texts(q=["a", "a", "b", "b"], r=[None] * 4), policy(2, "q", "r"))
    assert release.levels == {"q": 0, "r": 0}


def test_where_persons_have_many_records_k_counts_persons():
    frame = texts(who=["ann", "ann", "ann", "bob", "cyd", "cyd"], q=["x", "x", "x", "x", "y", "y"])
    columns = {"who": {"role": "identifier"}, "q": {"role": "quasi"}}
    fields = {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}], "release": {"entity": "who"}}
    release = shoal.anonymize(frame, shoal.Policy.of(fields))
    assert rows_of(release.table) == [("*",)] * 6  # y holds two records of one person
    assert release.measured["k"] == 3
    fields["release"] = {"entity": "who", "max_suppression": 0.4}
    release = shoal.anonymize(frame, shoal.Policy.of(fields))
    assert rows_of(release.table) == [("x",)] * 4
    assert release.measured["k"] == 2
    fields["release"] = {}
    assert shoal.anonymize(frame, shoal.Policy.of(fields)).levels == {"q": 0}  # records: both classes are crowds


def test_more_records_than_persons_do_not_make_a_crowd():
    frame = texts(who=["ann"] * 9, q=["x"] * 9)
    columns = {"who": {"role": "identifier"}, "q": {"role": "quasi"}}
    fields = {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}], "release": {"entity": "who"}}
    with pytest.raises(InfeasibleError):
        shoal.anonymize(frame, shoal.Policy.of(fields))


def test_where_a_null_matches_anything_k_over_some_columns_counts_each_record_once():
    # In q both are a, and in r the null could be x: each has both for company, which is two records and not four.
    frame = texts(q=["a", "a"], r=["x", None])

    def asked_for(k):
        columns = {"q": {"role": "quasi"}, "r": {"role": "quasi"}}
        require = [{"model": "k-anonymity", "k": k, "columns": ["q"]}]
        return shoal.Policy.of({"columns": columns, "require": require, "release": {"nulls": "wildcard"}})

    assert shoal.check(frame, asked_for(2)).verdicts[0].worst == 2
    assert not shoal.check(frame, asked_for(3)).holds
    with pytest.raises(InfeasibleError):
        shoal.anonymize(frame, asked_for(3))


@st.composite
def with_nulls(draw):
    """A frame of a few values and nulls, and k."""
    n_columns = draw(st.integers(1, 5))
    rows = draw(st.lists(st.tuples(*[st.sampled_from(["x", "y", "z", None])] * n_columns), min_size=1, max_size=14))
    return pd.DataFrame(rows, columns=[f"c{j}" for j in range(n_columns)], dtype="str"), draw(st.integers(2, 5))


@EXAMPLES
@given(with_nulls())
def test_records_that_match_as_released_hide_what_is_needed_and_no_more_than_if_they_counted_on_nobody(drawn):
    frame, k = drawn
    released = {}
    for matches in ("original", "released"):
        policy = {
            "columns": {name: {"role": "quasi"} for name in frame},
            "require": [{"model": "k-anonymity", "k": k}],
            "release": {
                "algorithm": "suppress_cells", "nulls": "wildcard", "matches": matches, "shuffle": False,
            },
        }  # fmt: skip
        try:
            released[matches] = shoal.anonymize(frame, policy).rows.table.to_pylist()
        except InfeasibleError:
            assert len(frame) < k
    if len(frame) < k:
        assert not released
        return
    before = [tuple(None if pd.isna(cell) else cell for cell in row) for row in frame.itertuples(index=False)]
    after = [tuple(row.values()) for row in released["released"]]

    def matched(row, rows):
        return sum(all(None in pair or pair[0] == pair[1] for pair in zip(row, other, strict=True)) for other in rows)

    for mine, shown in zip(before, after, strict=True):
        assert all(b in (a, None) for a, b in zip(mine, shown, strict=True))  # a value stays or is hidden
        assert matched(shown, after) >= k
        assert (mine != shown) >= (matched(mine, before) < k)  # who matched too few is not released as they were
    guarded = sum(cell is None for row in released["original"] for cell in row.values())
    assert sum(cell is None for row in after for cell in row) <= guarded
