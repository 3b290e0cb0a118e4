"""One judge: what check, anonymize and attack say of limits on attacks, from Python and from the command line."""

import json
import random
from pathlib import Path

import ibis
import pandas as pd
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.engines.opening import opened


def people(n: int = 60) -> pd.DataFrame:
    draw = random.Random(3)
    return pd.DataFrame(
        {
            "zip": [f"{draw.randrange(10, 99)}{i % 100:02}" for i in range(n)],
            "job": [draw.choice("abcd") for _ in range(n)],
            "disease": [draw.choice(["flu", "gout", "cold"]) for _ in range(n)],
        }
    )


POLICY = """
[columns]
zip = { role = "quasi", hierarchy = { mask = "right" } }
job = { role = "quasi" }
disease = { role = "sensitive" }
"""
LIMIT = '[[require]]\nmodel = "linkage-risk"\nmax = 0.3\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "raw.csv", index=False)
    (tmp_path / "limit.toml").write_text(POLICY + LIMIT, encoding="utf-8")
    (tmp_path / "wp216.toml").write_text('preset = "wp216"\n' + POLICY, encoding="utf-8")
    (tmp_path / "release.toml").write_text(
        POLICY + LIMIT + '[[require]]\nmodel = "k-anonymity"\nk = 10\n', encoding="utf-8"
    )
    return tmp_path


def run(place: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(place / w) if (place / w).suffix in (".csv", ".toml") else w for w in words])
    return done.exit_code, done.stdout


def test_a_raw_table_is_never_passed_by_a_policy_of_limits_alone(place: Path) -> None:
    code, printed = run(place, "check", "raw.csv", "-p", "limit.toml")
    assert code == 2
    assert "CANNOT BE DETERMINED" in printed
    assert "linkage risk at most 0.3, measured cannot be determined: needs the original." in printed
    assert "Whether the policy holds cannot be determined" in printed
    code, printed = run(place, "check", "raw.csv", "-p", "limit.toml", "--original", "raw.csv")
    assert code == 1
    assert "The policy does not hold" in printed


def test_a_preset_is_judged_by_all_that_it_asks(place: Path) -> None:
    pairs = pd.concat([people(), people()])
    pairs.to_csv(place / "pairs.csv", index=False)
    assert run(place, "check", "pairs.csv", "-p", "wp216.toml")[0] == 2  # 2-anonymous, and nobody was attacked
    code, printed = run(place, "check", "pairs.csv", "-p", "wp216.toml", "--original", "pairs.csv", "--json")
    assert code == 1
    found = json.loads(printed)
    assert (found["outcome"], found["holds"]) == ("fails", False)
    told = {verdict["asked"]: verdict["outcome"] for verdict in found["verdicts"]}
    assert told["2-anonymity"] == "holds"
    assert told["linkage risk at most 0.09, measured"] == "fails"


@pytest.mark.parametrize(
    ("engine", "limit"),
    [
        ("local", "linkage-risk"),
        ("local", "singling-out-risk"),
        ("duckdb", "singling-out-risk"),
        ("duckdb", "linkage-risk"),
    ],
)
def test_a_release_passes_with_its_original_and_cannot_be_told_without(place: Path, engine: str, limit: str) -> None:
    asked = (place / "release.toml").read_text(encoding="utf-8").replace("linkage-risk", limit)
    (place / "release.toml").write_text(asked, encoding="utf-8")
    data = ["raw.csv", "-p", "release.toml", "--engine", engine]
    assert run(place, "anonymize", *data, "-o", "safe.csv")[0] == 0
    data[0] = "safe.csv"
    assert run(place, "check", *data)[0] == 2
    code, printed = run(place, "check", *data, "--original", "raw.csv", "--json")
    assert json.loads(printed)["outcome"] == "holds", printed
    assert code == 0


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_engine_reads_files_in_their_order_to_judge_linkage(place: Path, suffix: str) -> None:
    """Twenty classes of three, and a row of the release for each of the original's, in the same order."""
    raw = pd.DataFrame({"zip": [f"{i % 20:02}" for i in range(60)], "job": "a", "disease": list("fgc") * 20})
    policy = shoal.Policy.parse(POLICY + '[[require]]\nmodel = "linkage-risk"\nmax = 0.4\n')
    write = {
        "csv": lambda table, path: table.to_csv(path, index=False),
        "parquet": lambda table, path: table.to_parquet(path, index=False),
    }[suffix]
    mixed = raw.sample(frac=1, random_state=1)
    outcomes = {}
    for name, released in (("kept", raw), ("mixed", mixed)):
        write(raw, place / f"raw.{suffix}")
        write(released, place / f"{name}.{suffix}")
        for engine in ("local", "duckdb"):
            rows, original = (opened(str(place / f"{each}.{suffix}"), engine=engine) for each in (name, "raw"))
            outcomes[name, engine] = shoal.check(rows, policy, original=original).outcome
    assert outcomes == {
        ("kept", "local"): "fails",
        ("kept", "duckdb"): "fails",
        ("mixed", "local"): "holds",
        ("mixed", "duckdb"): "holds",
    }


def test_an_engine_that_sees_no_order_does_not_call_linkage_kept(place: Path) -> None:
    data = ["raw.csv", "-p", "release.toml", "--engine", "duckdb"]
    assert run(place, "anonymize", *data, "-o", "safe.csv")[0] == 0  # which writes the rows in an order of its own
    asked = (place / "release.toml").read_text(encoding="utf-8") + "[release]\nshuffle = false\n"
    (place / "ordered.toml").write_text(asked, encoding="utf-8")
    for engine, exit_code in (("local", 1), ("duckdb", 2)):  # the order of the rows links them
        done = run(place, "anonymize", "raw.csv", "-p", "ordered.toml", "--engine", engine, "-o", "ordered.csv")
        assert done[0] == exit_code
        assert not (place / "ordered.csv").exists()
    backend = ibis.duckdb.connect()
    backend.con.execute(f"CREATE TABLE people AS FROM read_csv('{place / 'raw.csv'}', all_varchar = true)")
    with pytest.raises(shoal.errors.CannotTellError, match="set shuffle = true"):  # what is written from it has one
        shoal.anonymize(backend.table("people"), shoal.Policy.load(place / "ordered.toml"))
    (place / "folder").mkdir()
    people().to_parquet(place / "folder" / "part.parquet")
    folder = opened(str(place / "folder"))
    found = shoal.check(people(), shoal.Policy.load(place / "limit.toml"), original=folder)
    assert found.outcome != "holds"
    safe = opened(str(place / "safe.csv"))
    found = shoal.check(safe, shoal.Policy.load(place / "release.toml"), original=folder)
    assert [v.missing for v in found.verdicts if v.outcome == "unknown"] == [
        "needs rows in one order: write the folder as one file"
    ]


def test_attack_does_not_call_a_limit_kept_without_the_original(place: Path) -> None:
    assert run(place, "anonymize", "raw.csv", "-p", "release.toml", "-o", "safe.csv")[0] == 0
    code, printed = run(place, "attack", "safe.csv", "-p", "release.toml")
    assert code == 2
    assert "CANNOT BE DETERMINED" in printed
    assert run(place, "attack", "safe.csv", "-p", "release.toml", "--original", "raw.csv")[0] == 0
    assert run(place, "attack", "raw.csv", "-p", "limit.toml")[0] == 1  # what was reached was reached


def test_an_original_without_a_column_of_the_policy_is_named() -> None:
    asked = shoal.Policy.parse(POLICY + LIMIT)
    with pytest.raises(shoal.errors.PolicyError, match="the original has no column 'job'"):
        shoal.check(people(), asked, original=people().drop(columns="job"))


# ── what anonymize would refuse is offered by nobody ────────────────────────────────────────────────────────


def by_hand(**more: object) -> shoal.Policy:
    """Forty classes of two: linked every other time; or ten of eight."""
    return shoal.Policy.of(
        {
            "columns": {"a": {"role": "quasi", "hierarchy": {"mask": "right"}}, "b": {"role": "sensitive"}},
            "require": [{"model": "k-anonymity", "k": 2}, {"model": "linkage-risk", "max": 0.3}],
            "release": more,
        }
    )


TWOS = pd.DataFrame(
    {
        "a": [f"{letter}{digit}" for letter in "abcdefghij" for digit in "1234"] * 2,
        "b": random.Random(5).sample(range(1000), 80),  # no two rows are alike, so that none stand in their own order
    }
)


def test_a_frontier_calls_feasible_only_what_anonymize_would_release() -> None:
    found = shoal.frontier(TWOS, by_hand(), k=[2, 3, 9, 81])
    for point in found:
        asked = by_hand().model_dump(mode="json")
        asked["require"][0]["k"] = point.asked["k"]
        try:
            shoal.anonymize(TWOS, {name: asked[name] for name in ("columns", "require", "release")})
        except shoal.errors.ShoalError:
            assert point.feasible is False
        else:
            assert point.feasible is True
    assert [point.state for point in found] == ["refused", "found", "found", "infeasible"]
    assert found.points[0].reason.endswith("the attack on the finished release reached 0.5, above the limit")
    assert found.points[0].loss is None


def test_explore_recommends_nothing_that_would_be_refused() -> None:
    found = shoal.explore(TWOS, by_hand(), swept={"k": [2, 3]}, tolerable=0.5)
    assert [point.state for point in found.frontier] == ["refused", "found"]
    assert found.chosen == 1


def test_compare_tells_who_would_be_refused() -> None:
    found = {entry.algorithm: entry for entry in shoal.compare(TWOS, by_hand(), algorithms=["optimal", "mondrian"])}
    assert {entry.outcome for entry in found.values()} == {"refused"}
    assert "the attack on the finished release reached 0.5, above the limit" in found["optimal"].reason
    assert found["optimal"].loss == {}


def test_exit_codes_of_those_who_compare(place: Path) -> None:
    TWOS.to_csv(place / "twos.csv", index=False)
    by_hand().save(place / "twos.toml")
    data = ["twos.csv", "-p", "twos.toml"]
    assert run(place, "compare", *data, "--algorithms", "optimal")[0] == 1
    code, printed = run(place, "anonymize", *data, "--frontier", "k=2")
    assert code == 1
    assert "refused" in printed
    assert "Not released: linkage risk at most 0.3, measured: the attack on" in printed
    assert run(place, "anonymize", *data, "--frontier", "k=2,4")[0] == 0
    assert run(place, "explore", *data, "--sweep", "k=2")[0] == 1


def test_a_whole_release_limit_with_wildcards_is_judged_alike_by_all() -> None:
    table = pd.DataFrame({"a": ["k1", None, "k2", None, "l1"]})
    fields = {
        "columns": {"a": {"role": "quasi", "hierarchy": {"mask": "right"}}},
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "average-risk", "max": 0.35}],
        "release": {"nulls": "wildcard"},
    }
    release = shoal.anonymize(table, fields)
    (point,) = shoal.frontier(table, fields, k=[2])
    assert point.feasible
    assert point.loss == pytest.approx(release.loss["loss"]) == 0
    assert shoal.check(release.table, fields).holds
