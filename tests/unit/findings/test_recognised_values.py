"""Values that lead to a person: raised in plain and sensitive columns, whatever they are called."""

from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.findings import Finding
from shoal.policy import Policy

N = 120
REQUIRE = [{"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "l": 2, "column": "disease"}]
BASE: dict[str, Any] = {"age": [20 + i % 10 for i in range(N)], "disease": ["flu", "gout", "asthma"] * 40}


def found(role: str, **columns: list[Any]) -> list[Finding]:
    roles = {"age": "quasi", "disease": "sensitive"} | dict.fromkeys(columns, role)
    asked = Policy.of({"columns": {name: {"role": role} for name, role in roles.items()}, "require": REQUIRE})
    findings = shoal.anonymize(pa.table(BASE | columns), asked).findings
    return [finding for finding in findings if finding.kind == "identifying-values"]


@pytest.mark.parametrize("role", ["plain", "sensitive"])
def test_e_mail_addresses_under_any_name(role: str) -> None:
    [finding] = found(role, x=[f"p{i % 20}@example.org" for i in range(N)])
    assert (finding.severity, finding.columns) == ("stop", ("x",))
    assert "e-mail addresses" in finding.fact


def test_e_mail_addresses_within_remarks() -> None:
    [finding] = found("plain", x=[f"write to p{i % 20}@example.org on Monday" for i in range(N)])
    assert finding.fact.startswith("Some texts of column 'x' contain")


def test_coordinates_of_points() -> None:
    places = {"lat": [52.1 + i % 30 / 97 for i in range(N)], "x_coord": [13.2 + i % 30 / 89 for i in range(N)]}
    assert [finding.columns for finding in found("plain", **places)] == [("lat", "x_coord")]


@pytest.mark.parametrize(
    "values", [["yes", "no"] * 60, [f"2024-03-{1 + i % 28:02}" for i in range(N)], [i % 50 * 1.5 for i in range(N)]]
)
def test_other_values_raise_nothing(values: list[Any]) -> None:
    assert found("plain", x=values) == []


def test_no_value_is_shown() -> None:
    assert all("p1@" not in str(finding) for finding in found("plain", x=[f"p{i % 20}@example.org" for i in range(N)]))
