"""If these fail, a measured figure is not that of its definition."""

from __future__ import annotations

import json
import math
from math import exp, inf, log
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import PolicyError
from shoal.judge.figures import Figures

approx = pytest.approx

# Three classes of 4, 2 and 2 records; in the whole flu 3/8, cancer 3/8, hiv 2/8.
#   a: flu 2, cancer 1, hiv 1      b: flu 1, cancer 1      c: cancer 1, hiv 1
PATIENTS = pa.table({
    "sex": ["f", "f", "f", "f", "m", "m", "f", "f"],
    "age": ["20", "20", "20", "20", "20", "20", "30", "30"],
    "disease": ["flu", "flu", "cancer", "hiv", "flu", "cancer", "cancer", "hiv"],
    "ward": ["1", "2", "1", "1", "1", "1", "2", "2"],
})  # fmt: skip


def policy(**parts: Any) -> shoal.Policy:
    """Nothing may be generalized away: what is measured is the table as it is."""
    roles = {"sex": "quasi", "age": "quasi", "disease": "sensitive", "ward": "plain"}
    fields = {
        "columns": {name: {"role": role} for name, role in roles.items()},
        "require": [{"model": "k-anonymity", "k": 1}],
    }
    return shoal.Policy.of({**fields, **parts})


def test_every_figure_as_counted_by_hand() -> None:
    found = shoal.measure(PATIENTS, quasi=["sex", "age"], sensitive=["disease"])
    assert dict(found) == {
        "records": 8,
        "classes": 3,
        "k": 2,
        "uniques": 0,
        "sample_uniqueness": 0.0,
        "risk_max": 1 / 2,
        "risk_mean": approx(3 / 8),  # classes / records
        "l": 2,
        "entropy_l": approx(2),  # classes b and c: two values in equal shares
        "recursive_c": 1.0,  # a: 2/(1+1), b and c: 1/1
        "t": approx(3 / 8),  # c: ½ (3/8 + 1/8 + 1/4)
        "alpha": 1 / 2,
        "beta": approx(1),  # hiv in c: (1/2 - 1/4) / (1/4)
        "enhanced_beta": approx(1),  # and 1 is not above -ln(1/4)
        "delta": inf,  # b lacks hiv
    }
    assert dict(found.columns["disease"]) == {name: found[name] for name in list(found)[7:]}


def test_the_worst_class_decides() -> None:
    a = PATIENTS.slice(0, 4)
    found = shoal.measure(a, quasi=["sex", "age"], sensitive=["disease"])
    assert found["entropy_l"] == approx(exp(0.5 * log(2) + 0.5 * log(4)))
    assert (found["k"], found["l"], found["recursive_c"], found["alpha"]) == (4, 3, 1.0, 0.5)
    # A table of one class is the whole.
    assert (found["t"], found["beta"], found["enhanced_beta"], found["delta"]) == approx((0, 0, 0, 0))


@pytest.mark.parametrize(("l", "c"), [(1, 1 / 2), (2, 1.0), (3, inf)])
def test_the_l_of_recursive_diversity(l: int, c: float) -> None:
    # ℓ = 1: r_1 over all; b and c need 1/2. ℓ = 3: b has no third value.
    assert shoal.measure(PATIENTS, quasi=["sex", "age"], sensitive=["disease"], l=l)["recursive_c"] == c


def test_a_log_ratio_where_no_value_is_absent() -> None:
    table = pa.table({"q": list("aaabbb"), "s": ["x", "x", "y", "x", "y", "y"]})
    found = shoal.measure(table, quasi=["q"], sensitive=["s"])
    assert found["delta"] == approx(log(3 / 2))  # |ln((1/3) / (1/2))|, above ln((2/3) / (1/2))
    assert found["beta"] == approx(1 / 3)
    assert found["t"] == approx(1 / 6)


def test_no_beta_suffices_where_a_frequent_value_takes_a_whole_class() -> None:
    table = pa.table({"q": list("aabb"), "s": list("xxxy")})
    found = shoal.measure(table, quasi=["q"], sensitive=["s"])
    # In the first class x goes from 3/4 to 1, a gain of 1/3, and -ln(3/4) is less.
    assert (found["beta"], found["enhanced_beta"]) == (approx(1), inf)
    assert (found["l"], found["entropy_l"], found["alpha"], found["recursive_c"]) == (1, 1.0, 1.0, inf)


def test_records_that_stand_alone() -> None:
    found = shoal.measure(pa.table({"q": ["a", "b", "b", "c"]}), quasi=["q"])
    sizes = {"records": 4, "classes": 3, "k": 1, "uniques": 2, "sample_uniqueness": 2 / 4}
    assert dict(found) == {**sizes, "risk_max": 1.0, "risk_mean": 3 / 4}
    assert found.columns == {}
    alone = shoal.measure(pa.table({"q": ["a"], "s": ["x"]}), quasi=["q"], sensitive=["s"])
    assert (alone["k"], alone["uniques"], alone["risk_mean"], alone["t"]) == (1, 1, 1.0, 0.0)


def test_the_worst_column_decides_where_several_are_sensitive() -> None:
    found = shoal.measure(PATIENTS, quasi=["sex", "age"], sensitive=["disease", "ward"])
    ward = found.columns["ward"]  # a: 3 and 1, b: both 1, c: both 2; in the whole 5/8 and 3/8
    assert (ward["l"], ward["alpha"], ward["recursive_c"]) == (1, 1.0, inf)
    assert ward["t"] == approx(5 / 8)
    assert (found["l"], found["t"], found["alpha"], found["recursive_c"]) == (1, approx(5 / 8), 1.0, inf)
    assert found.columns["disease"]["l"] == 2
    assert (found["beta"], ward["beta"]) == (approx(5 / 3), approx(5 / 3))  # ward 2 in c: (1 - 3/8) / (3/8)
    assert list(found.columns) == ["disease", "ward"]


def test_a_null_adds_no_diversity_and_is_a_value_of_its_own_in_distributions() -> None:
    table = pa.table({"q": ["a", "a", None, None, "", ""], "s": ["x", None, None, None, "x", "y"]})
    found = shoal.measure(table, quasi=["q"], sensitive=["s"])
    assert (found["classes"], found["k"]) == (3, 2)
    assert found["l"] == 0  # the second class has nulls only
    assert found["alpha"] == 1.0
    assert found["t"] == approx(1 / 2)  # null 3/6, x 2/6, y 1/6 in the whole: ½ (1/2 + 1/3 + 1/6)


def test_numbers_are_the_same_value_however_they_are_written_in_a_frame() -> None:
    table = pa.table({"q": pa.array([1.0, 1.0, -0.0, 0.0, float("nan"), None]), "s": [1, 2, 1, 2, 1, 2]})
    found = shoal.measure(table, quasi=["q"], sensitive=["s"])
    assert (found["classes"], found["k"], found["l"]) == (3, 2, 2)


def test_any_source_gives_the_same_figures(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    frame = PATIENTS.to_pandas()
    frame.to_csv(path, index=False)
    expected = dict(shoal.measure(PATIENTS, quasi=["sex", "age"], sensitive=["disease"]))
    shuffled = frame.sample(frac=1, random_state=3)
    for data in (path, str(path), frame, shuffled, pl.from_arrow(PATIENTS)):
        assert dict(shoal.measure(data, quasi=["age", "sex"], sensitive=["disease"])) == approx(expected)


def test_a_column_may_be_looked_at_from_both_sides() -> None:
    found = shoal.measure(PATIENTS, quasi=["disease"], sensitive=["disease"])
    assert (found["k"], found["l"], found["classes"]) == (2, 1, 3)


def test_mistakes_are_named() -> None:
    with pytest.raises(PolicyError, match="the table has no column 'town'"):
        shoal.measure(PATIENTS, quasi=["town"])
    with pytest.raises(PolicyError, match="the table has no column 'salary'"):
        shoal.measure(PATIENTS, quasi=["sex"], sensitive=["salary"])
    with pytest.raises(PolicyError, match="at least one column"):
        shoal.measure(PATIENTS, quasi=[])
    with pytest.raises(PolicyError, match="l: must be at least 1"):
        shoal.measure(PATIENTS, quasi=["sex"], sensitive=["disease"], l=0)


def test_figures_are_a_mapping() -> None:
    found = shoal.measure(PATIENTS, quasi=["sex", "age"], sensitive=["disease"])
    assert isinstance(found, Figures)
    assert found["k"] == 2
    assert "k" in found
    assert "colour" not in found
    with pytest.raises(KeyError):
        found["colour"]
    assert len(found) == len(list(found)) == 15
    plain = found.as_dict()
    assert plain["columns"]["disease"]["l"] == 2
    assert json.loads(json.dumps(plain))["k"] == 2


# ── the figures of a release ────────────────────────────────────────────────────────────────────────────────


def test_a_release_has_the_figures_of_its_rows() -> None:
    release = shoal.anonymize(PATIENTS, policy())
    assert release.levels == {"sex": 0, "age": 0}
    found = shoal.measure(release.table, quasi=["sex", "age"], sensitive=["disease"])
    assert dict(release.measured) == approx(dict(found))


def test_a_release_is_measured_by_the_distance_and_the_l_that_were_asked() -> None:
    table = pa.table({"q": list("aabb"), "pay": ["1", "2", "9", "11"]})
    columns = {"q": {"role": "quasi"}, "pay": {"role": "sensitive"}}
    for distance, t in (("equal", 1 / 2), ("ordered", 1 / 3), ("numeric", 17 / 40)):
        require = [
            {"model": "t-closeness", "t": 1, "distance": distance},
            {"model": "recursive-l-diversity", "c": 99, "l": 1},
        ]
        release = shoal.anonymize(table, shoal.Policy.of({"columns": columns, "require": require}))
        # Ordered: (1/4 + 1/2 + 1/4) / 3. Numeric: (1·1/4 + 7·1/2 + 2·1/4) / 10, for either class.
        assert release.measured["t"] == approx(t)
        assert release.verdicts.verdicts[0].worst == approx(t)
        assert release.measured["recursive_c"] == 1 / 2


def test_persons_are_counted_where_records_are_not_persons() -> None:
    table = pa.table({
        "who": ["p", "p", "p", "q", "r", "s"],
        "q": ["a", "a", "a", "a", "b", "b"],
    })  # fmt: skip
    asked = shoal.Policy.of({
        "columns": {"who": {"role": "identifier"}, "q": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"entity": "who"},
    })  # fmt: skip
    found = shoal.anonymize(table, asked).measured
    assert (found["records"], found["classes"], found["k"], found["uniques"]) == (6, 2, 2, 0)
    assert found["risk_max"] == 1 / 2
    assert found["risk_mean"] == approx(1 / 2)  # each record is one of two persons'


def test_wildcards_are_measured_as_wildcards() -> None:
    table = pa.table({"q": ["a", "a", None, "b"], "s": ["x", "y", "x", "y"]})
    asked = shoal.Policy.of({
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}],
        "release": {"nulls": "wildcard"},
    })  # fmt: skip
    release = shoal.anonymize(table, asked)
    found = release.measured
    assert release.levels == {"q": 0}
    # a matches the a's and the null, the null everybody, b itself and the null.
    assert (found["records"], found["classes"], found["k"], found["uniques"]) == (4, 3, 2, 0)
    assert found["risk_mean"] == approx((2 / 3 + 1 / 4 + 1 / 2) / 4)
    assert (found["l"], found["alpha"]) == (2, approx(2 / 3))
    assert [verdict.worst for verdict in release.verdicts.verdicts] == [found["k"], found["l"]]
    as_category = shoal.measure(pd.DataFrame(release.table.to_pydict()), quasi=["q"], sensitive=["s"])
    assert as_category["k"] == 1


def test_a_population_tells_how_many_people_are_behind_each_class() -> None:
    table = pa.table({"zip": ["a", "a", "b"], "disease": ["flu", "cold", "flu"]})
    people = pa.table({"zip": ["a", "a", "a", "a", "b", "c", None]})
    found = shoal.measure(table, quasi=["zip"], sensitive=["disease"], population=people)
    assert found["k_map"] == 1  # one b
    assert found["presence"] == 1.0  # the only b is in the table; of four a two are
    assert found["population_uniqueness"] == pytest.approx(1 / 3)
    assert found["sample_uniqueness"] == pytest.approx(1 / 3)
    with pytest.raises(PolicyError, match="no column 'zip'"):
        shoal.measure(table, quasi=["zip"], population=pa.table({"age": ["1"]}))


@pytest.mark.parametrize("distance", ["equal", "ordered", "numeric", "kl", "js"])
def test_t_is_measured_by_the_distance_asked_for(distance: str) -> None:
    # 1, 2, 10 once each: the classes {1} and {2, 10} have shares (1, 0, 0) and (0, ½, ½) against (⅓, ⅓, ⅓).
    table = pa.table({"zip": ["a", "b", "b"], "pay": ["1", "2", "10"]})
    found = shoal.measure(table, quasi=["zip"], sensitive=["pay"], distance=distance)
    p, q = (0, 1 / 2, 1 / 2), (1 / 3,) * 3
    alone = (1.0, 0, 0)
    expected = {
        "equal": max(sum(abs(x - y) for x, y in zip(c, q, strict=True)) / 2 for c in (p, alone)),
        "ordered": max((abs(c[0] - 1 / 3) + abs(c[0] + c[1] - 2 / 3)) / 2 for c in (p, alone)),
        "numeric": max((abs(c[0] - 1 / 3) * 1 + abs(c[0] + c[1] - 2 / 3) * 8) / 9 for c in (p, alone)),
        "kl": math.log(3),
        "js": max(_jensen_shannon(c, q) for c in (p, alone)),
    }[distance]
    assert found["t"] == pytest.approx(expected)
    with pytest.raises(PolicyError, match="unknown distance"):
        shoal.measure(table, quasi=["zip"], sensitive=["pay"], distance="euclid")


def _jensen_shannon(p: tuple[float, ...], q: tuple[float, ...]) -> float:
    m = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
    return sum(sum(x * math.log(x / z) for x, z in zip(c, m, strict=True) if x) for c in (p, q)) / 2
