"""The risk of households: against a sum over everything that may happen to their members, and how it behaves."""

import itertools
import json
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.engines.opening import opened
from shoal.errors import PolicyError

Record = tuple[str, str | None, str]  # age, home, who
records = st.lists(
    st.tuples(st.sampled_from("1234"), st.sampled_from(["a", "b", "c", None]), st.sampled_from("uvwxyz")),
    min_size=2,
    max_size=9,
)


def asked(k: int = 1, **release: object) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"tree": {"*": {"low": ["1", "2"], "high": ["3", "4"]}}}},
                "home": {"role": "identifier"},
                "who": {"role": "identifier"},
            },
            "require": [{"model": "k-anonymity", "k": k}],
            "release": {"household": "home", **release},
        }
    )


def chance(risks: list[float]) -> float:
    """That at least one of independent events happens, summed over every way they may turn out."""
    total = 0.0
    for found in itertools.product([True, False], repeat=len(risks)):
        if any(found):
            way = 1.0
            for risk, happens in zip(risks, found, strict=True):
                way *= risk if happens else 1 - risk
            total += way
    return total


def brute(rows: list[Record], persons: bool) -> tuple[float, float]:
    """The greatest and the mean risk of the households of a table as it stands."""
    behind = defaultdict(set)
    for i, (age, _, who) in enumerate(rows):
        behind[age].add(who if persons else i)
    members: dict[object, dict[object, float]] = defaultdict(dict)
    home_of = []
    for i, (age, home, who) in enumerate(rows):
        member = who if persons else i
        key = ("home", home) if home is not None else ("alone", member)
        members[key][member] = max(members[key].get(member, 0.0), 1 / len(behind[age]))
        home_of.append(key)
    risk = {key: chance(list(of.values())) for key, of in members.items()}
    return max(risk.values()), sum(risk[key] for key in home_of) / len(rows)


@given(records, st.booleans())
@examples(600)
def test_risks_of_households_are_those_of_every_outcome(rows: list[Record], persons: bool) -> None:
    data = pd.DataFrame(rows, columns=["age", "home", "who"])
    policy = asked(**({"entity": "who"} if persons else {}))
    measured = shoal.anonymize(data, policy).measured  # k = 1: as it stands
    most, mean = brute(rows, persons)
    assert measured["household_risk_max"] == pytest.approx(most)
    assert measured["household_risk_mean"] == pytest.approx(mean)


@given(records, st.integers(1, 3))
def test_a_household_is_at_least_as_easy_to_find_as_its_members(rows: list[Record], k: int) -> None:
    data = pd.DataFrame(rows, columns=["age", "home", "who"])
    try:
        measured = shoal.anonymize(data, asked(k)).measured
    except shoal.errors.InfeasibleError:
        return
    assert measured["risk_max"] - 1e-12 <= measured["household_risk_max"] <= 1
    assert measured["risk_mean"] - 1e-12 <= measured["household_risk_mean"] <= measured["household_risk_max"] + 1e-12


@pytest.mark.parametrize("entity", [{}, {"entity": "who"}])
@pytest.mark.parametrize("algorithm", ["optimal", "mondrian"])
def test_engines_agree_and_the_certificate_is_verified(tmp_path: Path, algorithm: str, entity: dict[str, str]) -> None:
    rows = [(str(1 + i % 4), f"h{i // 3}" if i % 7 else None, f"p{i // 2}") for i in range(60)]
    data = pd.DataFrame(rows, columns=["age", "home", "who"])
    data.to_csv(tmp_path / "raw.csv", index=False)
    spelled = {"missing": [""], **asked(3, algorithm=algorithm, **entity).model_dump(mode="json", exclude={"missing"})}
    policy = shoal.Policy.of(spelled)
    found = {}
    for engine in ("local", "duckdb"):
        release = shoal.anonymize(opened(str(tmp_path / "raw.csv"), engine=engine), policy)
        found[engine] = [release.measured[f"household_risk_{which}"] for which in ("max", "mean")]
        proof = json.loads(json.dumps(release.save(tmp_path / f"{engine}.csv")))
        verified = shoal.verify_certificate(proof, tmp_path / f"{engine}.csv", original=tmp_path / "raw.csv")
        told = {line.name: line for line in verified}["measured.household_risk_max"]
        assert told.holds is None
        assert "'home', which identifies households" in told.why
        assert verified.outcome != "fails"
    assert found["local"] == pytest.approx(found["duckdb"])
    page = tmp_path / "report.html"
    release.report(page)
    assert "The probability that some member of a household is identified is at most" in page.read_text(
        encoding="utf-8"
    )


def test_a_column_of_households_must_be_removed() -> None:
    with pytest.raises(PolicyError, match=r"release\.household: no column 'family' under columns"):
        asked(household="family")
    with pytest.raises(PolicyError, match=r"release\.household: 'age' identifies households, so its role must be"):
        asked(household="age")


def test_a_proposal_names_the_column_of_households() -> None:
    data = pd.DataFrame({"hhid": [i // 3 for i in range(90)], "age": [20 + i % 50 for i in range(90)]})
    found = shoal.inspect(data)
    assert found.policy.release.household == "hhid"
    assert 'household = "hhid"' in found.toml()
