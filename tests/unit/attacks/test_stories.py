"""People whose story is told: chosen by rule, counted as brute force counts them, told without their values."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

import shoal
from shoal.attacks.stories import Learned, Matches, Story, stories
from shoal.engines.base import Rows
from shoal.engines.opening import opened

COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
    "sex": {"role": "quasi", "hierarchy": {"flat": True}},
    "ill": {"role": "sensitive"},
}


def people(n: int = 120, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": pa.array(rng.integers(20, 60, n)),
            "sex": pa.array(rng.choice(["f", "m"], n)),
            "ill": pa.array(rng.choice(["flu", "hiv", "cut"], n, p=[0.6, 0.3, 0.1])),
        }
    )


def policy(k: int = 5, **release: Any) -> dict[str, Any]:
    given = {"algorithm": "optimal", "max_suppression": 0.2} | release
    return {"columns": COLUMNS, "require": [{"model": "k-anonymity", "k": k}], "release": given}


def row(table: pa.Table, i: int, names: tuple[str, ...] = ("age", "sex")) -> tuple[str, ...]:
    return tuple(str(table[name][i].as_py()) for name in names)


def like(table: pa.Table, found: tuple[str, ...]) -> list[int]:
    return [i for i in range(table.num_rows) if row(table, i) == found]


def source(made: shoal.Release, record: int) -> int:
    assert isinstance(made.rows, Rows)
    assert made.rows.sources is not None
    return int(made.rows.sources[record])


def by_reason(found: tuple[Story, ...]) -> dict[str, Story]:
    return {story.why: story for story in found}


def test_numbers_are_those_that_brute_force_counts() -> None:
    original = people()
    made = shoal.anonymize(original, policy())
    told = stories(made)
    assert {"exposed", "found before", "inferred", "typical"} <= {story.why for story in told}
    assert len({story.row for story in told}) == len(told)
    for story in told:
        assert tuple(story.known.values()) == row(original, story.row)
        before = like(original, row(original, story.row))
        assert story.before.records == len(before)
        assert story.before.learned[0].records == max(np.unique(original["ill"].take(before), return_counts=True)[1])
        if story.record is None:
            continue
        assert source(made, story.record) == story.row
        # With one level per column the labels exclude each other: who matches is the class of the own record.
        after = like(made.table, row(made.table, story.record))
        assert story.after.records == len(after)
        ill = made.table["ill"].take(after).to_pylist()
        (learned,) = story.after.learned
        assert learned.records == ill.count(learned.value) == max(map(ill.count, ill))
        assert learned.right == (learned.value == original["ill"][story.row].as_py())


def test_people_are_chosen_by_rule() -> None:
    original = people()
    made = shoal.anonymize(original, policy())
    told = by_reason(stories(made))
    smallest = min(len(like(made.table, row(made.table, i))) for i in range(made.table.num_rows))
    assert told["exposed"].after.records == smallest
    assert told["found before"].before.sentence == "1 record matches: it is theirs."


def test_who_was_suppressed_is_not_found_among_others() -> None:
    n = 40
    table = pa.table({"age": [25] * n + [55], "sex": ["f"] * (n + 1), "ill": ["flu", "cut"] * (n // 2) + ["hiv"]})
    story = by_reason(stories(shoal.anonymize(table, policy())))["suppressed"]
    assert (story.row, story.record) == (n, None)
    assert story.before.sentence == "1 record matches: it is theirs."
    assert story.after.sentence == "No record matches."
    assert story.after.worst is None


def test_matching_records_of_others_are_not_called_theirs() -> None:
    theirs = Learned("ill", "flu", 1, 1, right=False)
    assert Matches(1, None, own=False, learned=(theirs,)).sentence == "1 record matches, but it is not theirs."
    assert theirs.judged == "The record shows the ill. Theirs is another."
    assert theirs.sentence == "The record shows the ill."
    assert Learned("ill", "flu", 1, 4, right=False).judged == "Each of them shows a different ill."
    told = "The most frequent ill occurs in 2 of 4 matching records."
    assert Learned("ill", "flu", 2, 4, right=False).judged == f"{told} Theirs is another."
    assert Learned("ill", "flu", 2, 4, right=True).judged == told
    assert Learned("ill", "flu", 4, 4, right=True).judged == "All of them show the same ill."
    assert Matches(1, None, own=None, learned=()).sentence == "1 record matches."
    assert Matches(3, 1, own=True, learned=()).sentence == "3 records match: all of them are theirs."


def test_several_records_of_one_person_count_once() -> None:
    original = people(60)
    table = original.append_column("who", pa.array([i // 3 for i in range(60)]))
    asked = policy(k=3, entity="who")
    asked["columns"] = COLUMNS | {"who": {"role": "identifier"}}
    made = shoal.anonymize(table, asked)
    for story in stories(made):
        before = like(table, row(table, story.row))
        assert story.before.people == len({table["who"][i].as_py() for i in before})
        if story.record is not None:
            after = like(made.table, row(made.table, story.record))
            assert story.after.people == len({table["who"][source(made, i)].as_py() for i in after})
            assert story.after.people >= 3


def test_nothing_told_is_a_value() -> None:
    made = shoal.anonymize(people(), policy())
    for story in stories(made):
        sentences = [story.title]
        for found in (story.before, story.after):
            sentences += [found.sentence, *(each.sentence for each in found.learned)]
        assert not {"flu", "hiv", "cut"} & {word.strip(".,:") for text in sentences for word in text.split()}


def test_rows_that_stay_in_an_engine(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    pacsv.write_csv(people(), path)
    here, there = (stories(shoal.anonymize(opened(str(path), engine=name), policy())) for name in ("local", "duckdb"))
    assert there
    assert all(story.record is None and story.after.own is None for story in there)
    assert by_reason(there)["exposed"].after.records == by_reason(here)["exposed"].after.records
    assert by_reason(there)["exposed"].before == by_reason(here)["exposed"].before
