"""What a recoding tells about itself."""

from __future__ import annotations

import pyarrow as pa

import shoal

TREE = {"tree": {"*": {"sick": ["flu", "cold"], "well": ["none"]}}}
POLICY = shoal.Policy(
    columns={"age": {"role": "quasi"}, "state": {"role": "quasi", "hierarchy": TREE}},
    require=[{"model": "k-anonymity", "k": 1}],
)


def fingerprints(ages: list[str], states: list[str | None]) -> dict[str, str]:
    found = shoal.anonymize(pa.table({"age": ages, "state": states}), POLICY).certificate["hierarchies"]
    assert isinstance(found, dict)
    return found


def test_a_certificate_pins_what_a_tree_lists_and_no_values_of_the_data() -> None:
    first = fingerprints(["1", "2"], ["flu", "none"])
    assert list(first) == ["state"]  # the leaves of age are the ages in the table
    assert first == fingerprints(["99", "98"], ["cold", None])  # neither do other values, nor a null, change it


def test_another_tree_has_another_fingerprint() -> None:
    other = {"tree": {"*": {"sick": ["flu"], "well": ["none", "cold"]}}}
    fields = POLICY.model_dump(mode="json", exclude_none=True)
    fields["columns"]["state"]["hierarchy"] = other
    table = pa.table({"age": ["1", "2"], "state": ["flu", "none"]})
    found = shoal.anonymize(table, shoal.Policy.of(fields)).certificate["hierarchies"]
    assert found != fingerprints(["1", "2"], ["flu", "none"])
