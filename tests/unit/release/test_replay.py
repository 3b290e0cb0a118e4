"""A recoding kept and replayed on new rows; releases laid side by side."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.engines.opening import engine_of
from shoal.errors import DataError, InfeasibleError, PolicyError, VerificationError
from shoal.release.replay import described, replay, save_recoding


def people(n: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": draw.integers(20, 60, n),
            "zip": [f"{z:03}" for z in draw.integers(100, 130, n)],
            "disease": draw.choice(["flu", "gout", "cold"], n),
        }
    )


def policy(algorithm: str = "optimal", k: int = 4, **more) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                "name": {"role": "identifier"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "disease": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": k}, {"model": "distinct-l-diversity", "l": 2}],
            "release": {"algorithm": algorithm, "max_suppression": 0.1, **more},
        }
    )


@pytest.mark.parametrize("algorithm", ["optimal", "top_down", "mondrian", "mondrian_relaxed", "suppress_cells"])
def test_the_same_rows_become_the_same(algorithm: str) -> None:
    frame = people(300, 1)
    release = shoal.anonymize(frame, policy(algorithm))
    again = replay(described(release), frame)
    if algorithm in ("mondrian_relaxed", "suppress_cells"):  # equals parted ways: all now go where most went
        assert len(again.table) + again.held_back == 300
    else:
        pd.testing.assert_frame_equal(again.table, release.table)
        assert again.suppressed == release.suppressed
        assert again.failing == again.unknown == 0
    assert again.verdicts.holds


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian"])
def test_a_recoding_is_that_of_its_own_release_whatever_was_counted_since(algorithm: str) -> None:
    frame = people(300, 1)
    engine = engine_of(frame)
    release = shoal.anonymize(engine, policy(algorithm))
    kept = described(release)
    coarser = policy("mondrian_relaxed", k=20)
    columns = {**coarser.columns, "zip": coarser.columns["zip"].model_copy(update={"min_level": 1})}
    shoal.anonymize(engine, coarser.model_copy(update={"columns": columns}))
    assert described(release) == kept
    pd.testing.assert_frame_equal(replay(described(release), frame).table, release.table)


def test_new_values_find_their_place_where_levels_tell_it() -> None:
    frame = people(300, 1)
    old = frame[frame["age"] != 33]
    release = shoal.anonymize(old, policy())
    level = release.levels["age"]
    assert level
    new = replay(described(release), frame)
    assert new.unknown == 0
    label = dict(described(release)["columns"]["age"]["values"])["34"]
    assert label in set(new.table["age"])
    assert shoal.check(new.table, policy()).holds


@pytest.mark.parametrize("level", [99, 10**30])
def test_a_level_that_the_hierarchy_has_not(level: int) -> None:
    frame = people(300, 1)
    saved = described(shoal.anonymize(frame[frame["age"] != 33], policy()))
    saved["columns"]["age"]["level"] = level
    assert replay(saved, frame).unknown == (frame["age"] == 33).sum()


@pytest.mark.parametrize(
    ("model", "released"),
    [
        # Classes of 1, 1, 2 and 4 records: 4 classes by 8 records; without one of the ones 3 by 7, without both 2 by 6.
        ({"model": "average-risk", "max": 0.5}, 8),
        ({"model": "average-risk", "max": 0.43}, 7),
        ({"model": "average-risk", "max": 0.4}, 6),
        ({"model": "sample-uniqueness", "max": 0.2}, 7),
        ({"model": "sample-uniqueness", "max": 0.1}, 6),
    ],
)
def test_where_the_release_as_a_whole_exceeds_a_limit_the_smallest_classes_are_held_back(model, released) -> None:
    table = pa.table({"a": list("wxyyzzzz")})
    fields = {"columns": {"a": {"role": "quasi"}}, "require": [model | {"max": 1}]}
    kept = described(shoal.anonymize(table, shoal.Policy.of(fields)))
    kept["policy"]["require"] = [model]
    done = replay(kept, table)
    assert (done.rows.n_records, done.failing) == (released, 8 - released)
    release = {"algorithm": "suppress_records", "max_suppression": 0.5}
    searched = shoal.anonymize(table, shoal.Policy.of({**fields, "require": [model], "release": release}))
    assert searched.suppressed == done.failing  # a search has the same rule


@pytest.mark.parametrize(("limit", "most"), [("linkage-risk", 0.2), ("singling-out-risk", 0.0)])
def test_what_anonymize_would_refuse_is_not_written_either(limit, most, tmp_path) -> None:
    table = pa.table({"a": list("wwxxyyzz")})
    fields = {"columns": {"a": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 1}]}
    kept = described(shoal.anonymize(table, shoal.Policy.of(fields)))
    kept["policy"]["require"].append({"model": limit, "max": most})
    batch = pa.table({"a": list("wxyz")})
    with pytest.raises(VerificationError, match="the attack on the finished release reached"):
        shoal.anonymize(batch, shoal.Policy.of(kept["policy"]))
    with pytest.raises(VerificationError, match="the attack on the finished release reached"):
        replay(kept, batch)
    pd.DataFrame({"a": list("wxyz")}).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "recoding.json").write_text(json.dumps(kept), encoding="utf-8")
    out = tmp_path / "out.csv"
    done = CliRunner().invoke(
        app, ["apply", str(tmp_path / "recoding.json"), str(tmp_path / "new.csv"), "-o", str(out), "--header"]
    )
    assert done.exit_code == 1
    assert not out.exists()


def test_rows_that_would_break_the_policy_are_held_back_and_counted() -> None:
    release = shoal.anonymize(people(300, 1), policy())
    batch = people(60, 2)
    done = replay(described(release), batch)
    assert done.held_back == done.unknown + done.suppressed + done.failing == 60 - len(done.table)
    assert done.failing > 0
    sizes = done.table.groupby(["age", "zip"]).size()
    assert sizes.min() >= 4
    assert (done.table.groupby(["age", "zip"])["disease"].nunique() >= 2).all()
    labels = set(map(tuple, release.table[["age", "zip"]].to_numpy()))
    known = described(release)["columns"]
    for column in ("age", "zip"):
        assert set(done.table[column]) <= {label for _, label in known[column]["values"]}
    assert labels & set(sizes.index)


def test_what_was_suppressed_before_stays_so_even_in_company() -> None:
    crowd = pd.DataFrame({"q": ["a"] * 5 + ["b"], "s": ["x", "y"] * 3})
    asked = shoal.Policy.of(
        {
            "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
            "require": [{"model": "k-anonymity", "k": 3}],
            "release": {"max_suppression": 0.2},
        }
    )
    release = shoal.anonymize(crowd, asked)
    assert (release.levels, release.suppressed) == ({"q": 0}, 1)
    # Four more with the same tuple: together with the earlier release they would tell of the one who was left out.
    done = replay(described(release), pd.DataFrame({"q": ["a"] * 4 + ["b"] * 4, "s": ["x", "y"] * 4}))
    assert (done.suppressed, done.failing, done.unknown) == (4, 0, 0)
    assert set(done.table["q"]) == {"a"}


def test_rows_alone_are_not_released() -> None:
    release = shoal.anonymize(people(300, 1), policy())
    with pytest.raises(InfeasibleError, match="all 2 records are held back"):
        replay(described(release), people(2, 3))


def test_a_value_that_no_hierarchy_knows_is_held_back() -> None:
    frame = people(300, 1).assign(age=lambda f: f["age"].astype(str))
    release = shoal.anonymize(frame, policy("mondrian"))
    strange = pd.concat([frame, frame.head(5).assign(zip="x9")])
    done = replay(described(release), strange)
    assert done.unknown == 5


def test_persons_are_counted_not_records() -> None:
    frame = people(300, 1).assign(name=lambda f: [f"p{i // 2}" for i in range(len(f))])
    asked = policy(k=3, entity="name")
    done = replay(described(shoal.anonymize(frame, asked)), frame)
    assert done.verdicts.holds
    one = frame.assign(name="always the same")
    with pytest.raises(InfeasibleError):
        replay(described(shoal.anonymize(frame, asked)), one)


def test_the_command_line(tmp_path) -> None:
    old, new, kept = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "recoding.json"
    people(300, 1).to_csv(old, index=False)
    people(80, 2).to_csv(new, index=False)
    policy().save(tmp_path / "policy.toml")

    def run(*arguments: object):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    first = ["anonymize", old, "-p", tmp_path / "policy.toml", "-o", tmp_path / "a.csv", "--recoding", kept, "-q"]
    assert run(*first).exit_code == 0
    done = run("apply", kept, new, "-o", tmp_path / "b.csv")
    assert done.exit_code == 0
    assert "records held back" in done.stdout
    told = json.loads(run("apply", kept, new, "-o", tmp_path / "c.csv", "--json").stdout)
    assert told["records"] + told["held_back"] == 80
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    assert run("check", tmp_path / "b.csv", "-p", tmp_path / "policy.toml").exit_code == 0
    refused = run("apply", kept, new, "-o", new, "--force")
    assert refused.exit_code == 2
    assert "input itself" in refused.stderr
    (tmp_path / "no.json").write_text("{}")
    assert "is not a recoding" in run("apply", tmp_path / "no.json", new, "-o", tmp_path / "d.csv").stderr
    assert "exists" in run(*first).stderr


def test_a_recoding_that_is_none(tmp_path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        replay(tmp_path / "none.json", people(10, 1))
    release = shoal.anonymize(people(300, 1), policy())
    save_recoding(release, tmp_path / "recoding.json")
    with pytest.raises(PolicyError, match="not in the table"):
        replay(tmp_path / "recoding.json", people(10, 1).drop(columns="zip"))


# ── releases laid side by side ──────────────────────────────────────────────────────────────────────────────


def test_two_releases_that_are_safe_alone_and_not_together() -> None:
    original = pa.table({"a": ["1", "1", "2", "2"], "b": ["1", "2", "1", "2"]})
    columns = {"a": {"role": "quasi"}, "b": {"role": "quasi"}}
    asked = shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
    by_a = pa.table({"a": ["1", "1", "2", "2"], "b": ["*"] * 4})
    by_b = pa.table({"a": ["*"] * 4, "b": ["1", "2", "1", "2"]})
    for release in (by_a, by_b):
        assert shoal.check(release, asked, original=original).holds
    found = shoal.check(by_b, asked, original=original, previous=[by_a])
    assert not found.holds
    assert [verdict.holds for verdict in found.verdicts] == [True, False]
    assert found.verdicts[1].worst == 1
    assert shoal.check(by_a, asked, original=original, previous=[by_a]).holds
    with pytest.raises(PolicyError, match="original"):
        shoal.check(by_b, asked, previous=[by_a])


def test_releases_of_one_recoding_stay_safe_together() -> None:
    frame = people(300, 1)
    release = shoal.anonymize(frame, policy())
    halves = [replay(described(release), frame.iloc[i::2]).table for i in range(2)]
    found = shoal.check(halves[0], policy(), original=frame, previous=[halves[1]])
    assert found.holds


def test_the_original_must_be_of_the_same_people() -> None:
    frame = people(300, 1)
    release = shoal.anonymize(frame, policy()).table
    with pytest.raises(PolicyError, match="300 cells of a release match no value of the original"):
        shoal.check(release, policy(), original=frame.assign(zip="999"), previous=[release])


AGES = pa.table({"age": [str(age) for age in range(20, 32)]})


def by_age(*texts: str) -> pa.Table:
    return pa.table({"age": list(texts)})


def of_ages() -> shoal.Policy:
    age = {"role": "quasi", "hierarchy": {"intervals": [5, 10]}}
    return shoal.Policy.of({"columns": {"age": age}, "require": [{"model": "k-anonymity", "k": 2}]})


def test_ranges_and_sets_that_are_no_labels_tell_people_apart_too() -> None:
    by_fives = by_age(*["20-24"] * 5, *["25-29"] * 5, *["30-34"] * 2)
    ranges = by_age(*["20-22"] * 3, *["23-24"] * 2, *["25-26"] * 2, *["27-28"] * 2, *["29-31"] * 3)
    sets = by_age(*["{20, 21, 22, 23, 24, 25, 26, 27, 28}"] * 9, *["{29, 30, 31}"] * 3)
    for release in (ranges, sets):  # 29 is alone: of 25-29 and of 29-31
        assert shoal.check(release, of_ages(), original=AGES).holds
        found = shoal.check(by_fives, of_ages(), original=AGES, previous=[release])
        assert (found.verdicts[1].worst, found.verdicts[1].records) == (1, 1)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["25.5"] * 12, "12 cells of a release match no value"),  # a mean
        (["25"] * 12, "has 12 records, but only 1 records of the original"),  # a mean that is somebody's value
    ],
)
def test_a_release_that_changed_values_is_not_laid_beside_others(texts: list[str], message: str) -> None:
    by_tens = by_age(*["20-29"] * 10, *["30-39"] * 2)
    with pytest.raises(PolicyError, match=message):
        shoal.check(by_tens, of_ages(), original=AGES, previous=[by_age(*texts)])


def test_an_earlier_release_may_be_coarser_than_levels_allow_now():
    people = pa.table({"age": ["21", "22", "31", "32"] * 3, "illness": ["flu", "gout", "hiv", "flu"] * 3})

    def asked(**limits):
        return shoal.Policy.of({
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}, **limits},
                "illness": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": 2}],
        })  # fmt: skip

    coarse = shoal.anonymize(people, asked(min_level=2)).table
    fine = shoal.anonymize(people, asked(max_level=1)).table
    verdicts = shoal.check(fine, asked(max_level=1), original=people, previous=[coarse])
    assert verdicts.holds
