"""MDAV as a search: classes by numbers and hierarchies, released as centres, under every requirement by class."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.errors import OutOfTimeError, PolicyError
from shoal.search import Problem
from shoal.search.cells.mdav import mdav, points


def policy(columns, require=({"model": "k-anonymity", "k": 3},), **release):
    return shoal.Policy.of({
        "columns": columns,
        "require": list(require),
        "release": {"algorithm": "mdav", **release},
    })  # fmt: skip


def age(cells="mean", **more):
    return {"role": "quasi", "hierarchy": {"intervals": [5, 20]}, "cells": cells, **more}


AGES = [20, 21, 22, 40, 41, 45, 80, 81, 90]


def test_classes_of_numbers_are_released_as_their_means():
    release = shoal.anonymize(pa.table({"age": AGES}), policy({"age": age()}))
    assert Counter(release.table["age"].to_pylist()) == {"21": 3, "42": 3, "83.67": 3}
    assert release.measured["k"] == 3
    assert release.levels == {"age": None}
    assert release.loss["loss"] == pytest.approx((3 * 2 + 3 * 5 + 3 * 10) / 70 / 9)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("median", {"21": 3, "41": 3, "81": 3}),
        ("mode", {"20": 3, "40": 3, "80": 3}),
        ("tight-range", {"20-22": 3, "40-45": 3, "80-90": 3}),
        ("hierarchy", {"20-24": 3, "40-59": 3, "80-99": 3}),
    ],
)
def test_the_same_classes_as_other_cells(cells, expected):
    release = shoal.anonymize(pa.table({"age": AGES}), policy({"age": age(cells)}))
    assert Counter(release.table["age"].to_pylist()) == expected


def test_the_file_that_is_written_is_counted_again(tmp_path):
    release = shoal.anonymize(pa.table({"age": AGES}), policy({"age": age()}))
    release.save(tmp_path / "safe.csv")
    assert shoal.check(tmp_path / "safe.csv", policy({"age": age()})).holds


def test_classes_that_fail_another_requirement_join_the_nearest():
    ages = [20, 21, 22, 26, 27, 28, 80, 81, 82]
    ill = ["flu", "flu", "flu", "gout", "flu", "cold", "gout", "flu", "cold"]
    asked = policy(
        {"age": age("tight-range"), "ill": {"role": "sensitive"}},
        ({"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}),
    )
    release = shoal.anonymize(pa.table({"age": ages, "ill": ill}), asked)
    assert Counter(release.table["age"].to_pylist()) == {"20-28": 6, "80-82": 3}


@pytest.mark.parametrize("seed", [17, 18, 20, 29, 67])
def test_classes_that_look_alike_are_judged_as_one(seed):
    # δ-disclosure that ignores absence may pass two classes and not their union. These tables have such classes with
    # one mode; the release would not hold.
    draw = np.random.default_rng(seed)
    n = int(draw.integers(12, 40))
    frame = pd.DataFrame({"age": draw.integers(20, 24, n), "ill": draw.choice(list("abc"), n, p=[0.5, 0.35, 0.15])})
    delta = float(draw.choice([0.7, 0.9, 1.2]))
    asked = policy(
        {"age": age("mode"), "ill": {"role": "sensitive"}},
        ({"model": "k-anonymity", "k": 2}, {"model": "delta-disclosure", "delta": delta, "absent": "ignore"}),
    )
    release = shoal.anonymize(frame, asked)
    assert release.verdicts.holds
    assert len(release.table) == n


def test_a_mean_of_words_is_refused():
    asked = policy({"job": {"role": "quasi", "cells": "mean"}})
    with pytest.raises(PolicyError, match=r"columns\.job\.cells: 'mean' needs numbers, and"):
        shoal.anonymize(pa.table({"job": ["a", "b", "c"]}), asked)


def test_a_column_that_is_shown_as_it_is_or_not_at_all_has_no_mean():
    with pytest.raises(PolicyError, match="unchanged or not at all"):
        policy({"age": age(only="suppress")})


def test_other_searches_of_classes_write_means_and_those_of_cuts_ranges():
    frame = pa.table({"age": AGES})
    asked = policy({"age": age()}, algorithm="mondrian")
    assert set(shoal.anonymize(frame, asked).table["age"].to_pylist()) == {"28.8", "74"}
    asked = policy({"age": age()}, algorithm="k_optimize")
    assert set(shoal.anonymize(frame, asked).table["age"].to_pylist()) == {"20-22", "40-45", "80-90"}


def test_out_of_time_is_told():
    asked = policy({"age": age()}, time_budget=1e-9)
    with pytest.raises(OutOfTimeError, match="of the records grouped"):
        shoal.anonymize(pa.table({"age": AGES}), asked)


# --- how records are seen ------------------------------------------------------------------------------------------


def seen(frame, columns):
    asked = policy(columns)
    table = LocalEngine.of(frame).count(asked, apart=True).table
    problem = Problem.of(table, asked)
    return problem, points(problem, np.repeat(np.arange(len(table.counts)), table.counts))


def test_numbers_alone_are_standardized():
    _, found = seen(pa.table({"age": [20, 30, 40]}), {"age": age()})
    assert found.squared
    assert found.numbers[:, 0].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])


def test_a_hierarchy_adds_its_levels_and_numbers_their_range():
    tree = {"person": {"old": ["a", "b"], "new": ["c"]}}
    _, found = seen(
        pa.table({"age": [20, 30, 40], "kind": ["a", "b", "c"]}),
        {"age": age(), "kind": {"role": "quasi", "hierarchy": {"tree": tree}, "weight": 3.0}},
    )
    assert not found.squared
    assert np.ptp(found.numbers[:, 0]) == 1
    assert found.prices.tolist() == [1.5, 1.5]
    apart = (found.signs[:, None] != found.signs[None]) @ found.prices
    assert apart.tolist() == [[0, 1.5, 3], [1.5, 0, 3], [3, 3, 0]]


def test_what_top_coding_joins_has_one_number_and_a_null_is_far_from_all():
    column = {"role": "quasi", "hierarchy": {"intervals": [5], "top": 60}}
    frame = pd.DataFrame({"age": ["20", "70", "90", None]})
    problem, found = seen(frame, {"age": column})
    texts = [problem.table.hierarchies[0].leaves[code] for code in problem.table.codes[:, 0]]
    number = dict(zip(texts, found.numbers[:, 0], strict=True))
    assert number["70"] == number["90"] != number["20"]
    sign = dict(zip(texts, found.signs[:, 0], strict=True))
    assert [sign[text] == sign[None] for text in ("20", "70", "90")] == [False] * 3
    assert found.prices.tolist() == [1.0]


def test_records_with_k_of_one_stay_as_they_are():
    asked = policy({"age": age()}, ({"model": "k-anonymity", "k": 1},))
    table = LocalEngine.of(pa.table({"age": AGES})).count(asked, apart=True).table
    answer = mdav(Problem.of(table, asked))
    assert answer.released[0].shares[answer.parts(table).codes[:, 0]].tolist() == [0.0] * 9


def test_numbers_that_no_double_holds_are_as_far_as_any():
    frame = pa.table({"age": ["1", "2", "3", "1e390", "2e390", "3e390"]})
    assert set(shoal.anonymize(frame, policy({"age": age("tight-range")})).table["age"].to_pylist()) == {
        "1-3",
        "[1e390, 3e390]",
    }
