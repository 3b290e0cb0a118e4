"""A release beside its original: small tables whose figures can be counted by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal.original.comparison
from shoal.engines.local import LocalEngine
from shoal.errors import DataError, MissingValueError, PolicyError
from shoal.original.comparison import compare_with_original
from shoal.policy import Policy


def policy(columns: dict[str, Any] | None = None, **release: Any) -> Policy:
    """Age in tens and sex, unless told otherwise."""
    hierarchies = columns or {"age": {"intervals": [10]}, "sex": {"flat": True}}
    return Policy.of(
        {
            "columns": {name: {"role": "quasi", "hierarchy": spec} for name, spec in hierarchies.items()},
            "require": [{"model": "k-anonymity", "k": 2}],
            "release": release,
        }
    )


def people(*rows: tuple[str | None, ...], names: tuple[str, ...] = ("age", "sex")) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)})


FIVE = people(("24", "F"), ("31", "F"), ("38", "F"), ("31", "M"), ("24", "M"))
# The two women of 31 and 38 need the second and the third record, so the first is that of the woman of 24, although
# it could also be the man's of 24, and although the second could also be hers.
REVEALING = people(("20-29", "*"), ("*", "F"), ("30-39", "F"), ("*", "M"), ("*", "M"))


def test_a_2_2_anonymous_release_that_conceals_nobody_from_who_knows_them_all() -> None:
    found = compare_with_original(FIVE, REVEALING, policy())
    assert (found.one_k, found.k_one, found.k_k, found.concealment) == (2, 2, 2, 1)
    assert found.below(2) == {"one_k": 0, "k_one": 0, "concealment": 1, "confusion": 0}


def test_records_that_look_different_can_conceal_each_other() -> None:
    found = compare_with_original(people(("31", "F"), ("38", "F")), people(("30-39", "F"), ("*", "F")), policy())
    assert (found.concealment, found.k_k, found.confusion) == (2, 2, 2)


def test_stars_make_many_candidates_and_conceal_only_one_another() -> None:
    # The first record can only be that of the first person; two records of stars are left to the other two.
    stars = people(("24", "F"), ("*", "*"), ("*", "*"))
    found = compare_with_original(people(("24", "F"), ("31", "F"), ("38", "M")), stars, policy())
    assert (found.one_k, found.k_one, found.concealment) == (2, 1, 1)
    assert found.below(3) == {"one_k": 2, "k_one": 1, "concealment": 3, "confusion": 2}


def test_k_one_and_one_k_are_different_promises() -> None:
    found = compare_with_original(
        people(("31", "F"), ("38", "F"), ("38", "M")), people(("30-39", "F"), ("30-39", "F"), ("38", "*")), policy()
    )
    assert (found.one_k, found.k_one) == (1, 2)
    assert found.below(2)["one_k"] == 1  # the man, whose only candidate is the third record


def test_every_record_of_a_tuple_counts() -> None:
    # 3 + 2 people, and released records of two kinds that everybody fits: 4 of one, 1 of the other.
    original = people(*[("31", "F")] * 3, *[("38", "F")] * 2)
    found = compare_with_original(original, people(*[("30-39", "F")] * 4, ("*", "F")), policy())
    assert (found.one_k, found.k_one, found.concealment, found.confusion) == (5, 5, 5, 5)
    # Two records are only for those of 38, and they need both: 3 are left to the others.
    found = compare_with_original(original, people(*[("30-39", "F")] * 3, *[("38", "F")] * 2), policy())
    assert (found.one_k, found.k_one, found.concealment) == (3, 2, 2)
    assert found.below(3) == {"one_k": 0, "k_one": 2, "concealment": 2, "confusion": 0}


def test_the_original_itself_hides_only_those_who_are_alike() -> None:
    original = people(("24", "F"), ("24", "F"), ("31", "M"))
    found = compare_with_original(original, original, policy())
    assert (found.one_k, found.k_one, found.concealment, found.confusion) == (1, 1, 1, 1)
    assert found.below(2) == dict.fromkeys(["one_k", "k_one", "concealment", "confusion"], 1)


def test_one_record_is_its_own_crowd() -> None:
    for cells in [("24", "F"), ("20-29", "*"), ("*", "*")]:
        found = compare_with_original(people(("24", "F")), people(cells), policy())
        assert (found.k_k, found.concealment, found.confusion) == (1, 1, 1)


def test_stars_alone_conceal_everybody_among_all() -> None:
    found = compare_with_original(FIVE, people(*[("*", "*")] * 5), policy())
    assert (found.k_k, found.concealment, found.confusion) == (5, 5, 5)


def test_a_release_of_other_people_is_no_generalization() -> None:
    # Everybody has two candidates, but three people share the same two.
    original = people(("31", "F"), ("38", "F"), ("39", "F"))
    found = compare_with_original(original, people(("30-39", "F"), ("30-39", "F"), ("20-29", "F")), policy())
    assert (found.one_k, found.k_one, found.concealment) == (2, 0, 0)
    assert found.below(1) == {"one_k": 0, "k_one": 1, "concealment": 3, "confusion": 0}


def test_dropped_records_are_stars_for_concealment_and_absent_otherwise() -> None:
    original = people(("24", "F"), ("31", "F"), ("38", "F"), ("61", "M"), ("67", "M"))
    kept = people(("30-39", "F"), ("30-39", "F"), ("24", "F"))
    found = compare_with_original(original, kept, policy())
    assert found.dropped == 2
    # The two men fit nothing that was released; the stars are for them, which leaves the woman of 24 alone.
    assert (found.one_k, found.k_one, found.concealment) == (0, 1, 1)
    assert found.below(2) == {"one_k": 3, "k_one": 1, "concealment": 1, "confusion": 1}
    with_stars = compare_with_original(original, pa.concat_tables([kept, people(("*", "*"), ("*", "*"))]), policy())
    assert with_stars.dropped == 0
    assert with_stars.one_k == 2
    assert sorted(with_stars.concealing) == sorted(found.concealing)


def test_a_dropped_record_that_resembles_a_class_hides_with_it() -> None:
    found = compare_with_original(
        people(("31", "F"), ("32", "F"), ("33", "F")), people(("30-39", "F"), ("30-39", "F")), policy()
    )
    assert (found.dropped, found.one_k, found.k_one, found.concealment) == (1, 2, 3, 3)


def test_more_records_than_there_were_are_refused() -> None:
    with pytest.raises(DataError, match="has 6 records, but the original has 5"):
        compare_with_original(FIVE, pa.concat_tables([FIVE, FIVE.slice(0, 1)]), policy())


def test_ranges_and_sets_that_are_no_labels_stand_for_what_they_hold() -> None:
    original = people(("24", "F"), ("31", "F"), ("38", "F"), ("38", "M"))
    release = people(("24-31", "F"), ("24-31", "F"), ("{31, 38}", "F"), ("35-40", "{F, M}"))
    found = compare_with_original(original, release, policy())
    assert not found.unknown
    # 24: the first two; 31: these and the set; 38, a woman: the set and the last; 38, a man: the last.
    assert sorted(found.candidates.tolist()) == [1, 2, 2, 3]
    assert found.k_one == 2


def test_ranges_are_read_with_the_marks_that_the_policy_names() -> None:
    commas = Policy.of({
        "columns": {"pay": {"role": "quasi", "decimal": ",", "thousands": ".", "hierarchy": {"intervals": [1000]}}},
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    original = people(("1.500,5",), ("1.900,0",), ("2.500,0",), ("2.600,0",), names=("pay",))
    # As others write them: without the policy 1.500 is one and a half, and nobody earns so little.
    release = people(("1.500-2.000",), ("1.500-2.000",), ("2.500,0-2.600,0",), ("2.500,0",), names=("pay",))
    found = compare_with_original(original, release, commas)
    assert not found.unknown
    # Nobody tells the first two apart; the third is in the range and the number, the fourth in the range alone.
    assert sorted(zip(found.originals, found.candidates, strict=True)) == [(1, 1), (1, 2), (2, 2)]


def test_a_text_that_is_no_label_fits_nobody_and_is_counted() -> None:
    release = people(("20-29", "?"), ("30-39", "?"), ("mid", "F"), ("31", "M"), ("24", "M"))
    found = compare_with_original(FIVE, release, policy())
    assert found.unknown == {"age": 1, "sex": 2}
    assert (found.one_k, found.k_one, found.concealment) == (0, 0, 0)
    assert found.below(1) == {"one_k": 3, "k_one": 3, "concealment": 5, "confusion": 0}
    # The men fit one record in both columns. The women fit in one column only: those of 24 and 31 three records, by
    # age twice and by sex once, the one of 38 two.
    assert sorted(zip(found.originals, found.ties, strict=True)) == [(1, 1), (1, 1), (1, 2), (1, 3), (1, 3)]


def test_a_label_of_values_that_the_original_lacks_is_known_and_fits_nobody() -> None:
    tree = {"sex": {"tree": {"any": ["F", "M", "X"]}}}
    found = compare_with_original(
        people(("F",), ("M",), names=("sex",)), people(("F",), ("X",), names=("sex",)), policy(tree)
    )
    assert found.unknown == {}
    assert (found.one_k, found.k_one, found.concealment) == (0, 0, 0)


def test_a_null_is_a_value_of_its_own() -> None:
    original = people(("24", None), ("24", "F"), ("24", "M"))
    found = compare_with_original(original, people(("24", None), ("24", "*"), ("24", "*")), policy())
    assert found.unknown == {}
    assert (found.one_k, found.k_one, found.concealment) == (2, 1, 1)
    assert found.below(3)["one_k"] == 2  # the one without a sex fits all three


def test_a_released_null_fits_nobody_where_the_original_has_none() -> None:
    original = people(("24", "F"), ("24", "M"))
    found = compare_with_original(original, people(("24", None), ("24", "*")), policy())
    assert found.unknown == {"sex": 1}
    assert (found.one_k, found.k_one, found.concealment) == (1, 0, 0)


def test_a_released_null_fits_everybody_as_a_wildcard() -> None:
    original = people(("24", None), ("24", "F"), ("24", "M"))
    released = people(("24", None), ("24", "F"), ("24", "*"))
    found = compare_with_original(original, released, policy(nulls="wildcard"))
    assert found.unknown == {}
    assert (found.one_k, found.k_one, found.concealment, found.confusion) == (2, 1, 1, 2)
    # Whose sex is missing in the original may be of any, so a released F is no record that fits for sure.
    assert sorted(zip(found.candidates, found.concealing, strict=True)) == [(2, 2), (2, 2), (3, 1)]
    category = compare_with_original(original, released, policy())
    assert sorted(zip(category.candidates, category.concealing, strict=True)) == [(1, 1), (2, 1), (2, 1)]


def test_nulls_that_the_policy_forbids_are_an_error() -> None:
    with pytest.raises(MissingValueError, match="'sex': 1 of 2"):
        compare_with_original(
            people(("24", None), ("24", "F")), people(("24", "*"), ("24", "*")), policy(nulls="forbid")
        )


def test_every_level_is_read_in_every_cell() -> None:
    mask = {"zip": {"mask": "right"}}
    original = people(("02138",), ("02139",), ("02141",), ("0214",), names=("zip",))
    released = people(("02138",), ("0213*",), ("021**",), ("*",), names=("zip",))
    found = compare_with_original(original, released, policy(mask))
    assert found.unknown == {}
    # 0214 is no 021**, which has five characters: it fits the star only, which nobody else can then have, and so on.
    figures = zip(found.originals, found.candidates, found.concealing, strict=True)
    assert sorted(figures) == [(1, 1, 1), (1, 2, 1), (1, 3, 1), (1, 4, 1)]
    assert sorted(found.sources) == [1, 2, 3, 4]


def test_a_text_on_two_levels_stands_for_what_either_says() -> None:
    tree = {"job": {"tree": {"*": {"nurse": ["nurse", "midwife"], "clerk": ["clerk"]}}}}
    original = people(("nurse",), ("midwife",), ("clerk",), names=("job",))
    found = compare_with_original(original, people(("nurse",), ("nurse",), ("clerk",), names=("job",)), policy(tree))
    assert sorted(found.candidates) == [1, 2, 2]


def test_values_that_the_hierarchy_does_not_know_are_at_the_top() -> None:
    given = Policy.of(
        {
            "columns": {"sex": {"role": "quasi", "hierarchy": {"tree": {"any": ["F", "M"]}}, "uncovered": "suppress"}},
            "require": [{"model": "k-anonymity", "k": 2}],
        }
    )
    original = people(("F",), ("D",), ("E",), names=("sex",))
    found = compare_with_original(original, people(("F",), ("any",), ("any",), names=("sex",)), given)
    assert found.unknown == {}
    assert sorted(zip(found.originals, found.candidates, strict=True)) == [(1, 3), (2, 2)]
    # The value as it was is no label: the policy would never have released it.
    assert compare_with_original(original, people(("F",), ("D",), ("any",), names=("sex",)), given).unknown == {
        "sex": 1
    }


def test_numbers_and_texts_empty_or_not_ascii_are_compared_as_text() -> None:
    columns = {"age": {"flat": True}, "name": {"flat": True}}
    original = pd.DataFrame({"age": [24.0, -0.0, np.nan], "name": ["", "é", "日本"]})
    released = people(("24", ""), ("0", "é"), (None, "日本"), names=("age", "name"))
    found = compare_with_original(original, released, policy(columns))
    assert (found.unknown, found.k_k, found.concealment) == ({}, 1, 1)
    composed = compare_with_original(
        original, people(("24", ""), ("0", "e\u0301"), (None, "日本"), names=("age", "name")), policy(columns)
    )
    assert composed.unknown == {"name": 1}


def test_any_kind_of_table_and_any_order_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text("sex,age\nM,*\nF,30-39\n*,20-29\nM,*\nF,*\n", encoding="utf-8")
    pandas = FIVE.to_pandas().sample(frac=1, random_state=1).reset_index(drop=True)
    expected = compare_with_original(FIVE, REVEALING, policy()).as_dict()
    for original in (pandas, pl.from_arrow(FIVE), LocalEngine.of(FIVE)):
        assert compare_with_original(original, path, policy()).as_dict() == expected


def test_plain_values_for_json() -> None:
    found = compare_with_original(FIVE, people(("20-29", "*"), ("x", "*"), ("*", "*")), policy()).as_dict()
    assert json.loads(json.dumps(found)) == {
        "one_k": 1,
        "k_one": 0,
        "k_k": 0,
        "concealment": 0,
        "confusion": 1,
        "originals": 5,
        "released": 3,
        "dropped": 2,
        "unknown": {"age": 1},
    }


def test_columns_that_the_release_lacks_are_named() -> None:
    with pytest.raises(PolicyError, match="no column 'sex'"):
        compare_with_original(FIVE, REVEALING.select(["age"]), policy())


def test_columns_that_nobody_links_on_do_not_matter() -> None:
    extra = REVEALING.append_column("income", pa.array([1, 2, 3, 4, 5]))
    assert (
        compare_with_original(FIVE, extra, policy()).as_dict()
        == compare_with_original(FIVE, REVEALING, policy()).as_dict()
    )


def test_records_are_not_passed_off_as_persons() -> None:
    given = Policy.of(
        {
            "columns": {"age": {"role": "quasi"}, "person": {"role": "identifier"}},
            "require": [{"model": "k-anonymity", "k": 2}],
            "release": {"entity": "person"},
        }
    )
    table = people(("24", "p"), ("24", "p"), names=("age", "person"))
    with pytest.raises(PolicyError, match="'person' identifies people"):
        compare_with_original(table, table.select(["age"]), given)


def test_messages_do_not_quote_the_data() -> None:
    with pytest.raises(DataError) as error:
        compare_with_original(people(("24", "secret")), people(("24", "secret"), ("24", "secret")), policy())
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("pairs", [1, 7, 50])
def test_blocks_of_any_size_give_the_same(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    ages = [str(age) for age in random.integers(20, 60, 80)]
    sexes = random.choice(["F", "M"], 80).tolist()
    rows = zip(ages, sexes, random.integers(0, 3, 80), random.integers(0, 2, 80), strict=True)
    released = people(*[((a, f"{a[0]}0-{a[0]}9", "*")[i], (s, "*")[j]) for a, s, i, j in rows])
    original = people(*zip(ages, sexes, strict=True))
    whole = compare_with_original(original, released, policy())
    monkeypatch.setattr(shoal.original.comparison, "BLOCK", 3 * pairs)
    monkeypatch.setattr(shoal.original.comparison, "CHUNK", pairs)
    parts = compare_with_original(original, released, policy())
    for name in ("originals", "released", "candidates", "sources", "concealing", "ties"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist(), name


def test_more_pairs_than_can_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shoal.original.comparison, "LARGEST", 3)
    with pytest.raises(DataError, match="more than 3 pairs"):
        compare_with_original(FIVE, REVEALING, policy())
