"""A release whose labels give original values back is not called ready, whether or not it was attacked."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.models.finding import Finding


def people(n: int = 300, seed: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table({
        "age": random.integers(20, 80, n),
        "town": random.choice(list("abcdefgh"), n),
        "sex": random.choice(["f", "m"], n),
        "illness": random.choice(["flu", "gout", "asthma"], n),
    })  # fmt: skip


def policy(algorithm: str, age: str, town: str) -> dict[str, Any]:
    return {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}, "cells": age},
            "town": {"role": "quasi", "cells": town},
            "sex": {"role": "quasi", "cells": "set" if town != "hierarchy" else "hierarchy"},
            "illness": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}],
        "release": {"algorithm": algorithm},
    }


def labelled(findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.kind == "labels-give-back"]


@pytest.mark.parametrize("algorithm", ["local", "mondrian"])
def test_tight_labels_are_not_published(algorithm: str) -> None:
    release = shoal.anonymize(people(), policy(algorithm, "tight-range", "tight-set"))
    (finding,) = labelled(release.findings)
    assert finding.severity == "stop"
    assert release.publication == "do not publish"
    attack = release.attacked().attacks.named("downcoding")
    assert finding.people == attack.successes > 0
    assert "'age'" in finding.fact


@pytest.mark.parametrize("algorithm", ["local", "mondrian", "cover", "mdav"])
def test_windows_give_nothing_back(algorithm: str) -> None:
    release = shoal.anonymize(people(), policy(algorithm, "range", "set"))
    assert not labelled(release.findings)
    assert release.attacked().attacks.named("downcoding").successes == 0


def test_a_table_is_checked_the_same_beside_its_original() -> None:
    before, asked = people(), policy("local", "tight-range", "tight-set")
    release = shoal.anonymize(before, asked)
    (finding,) = labelled(shoal.check(release.table, asked, original=before).findings)
    assert finding.people == labelled(release.findings)[0].people
    assert not labelled(
        shoal.check(release.table, policy("optimal", "hierarchy", "hierarchy"), original=before).findings
    )


def test_a_star_of_single_dimensional_says_that_two_values_occur() -> None:
    """A cell is hidden where its class has two labels of the cut: of a column with two values, both."""
    table = pa.table({"town": list("aaaabbbbcc"), "sex": list("ffffmmmmfm"), "illness": ["flu", "gout"] * 5})
    asked = policy("single_dimensional", "hierarchy", "hierarchy")
    del asked["columns"]["age"]
    release = shoal.anonymize(table, asked | {"require": [{"model": "k-anonymity", "k": 2}]})
    assert sorted(release.table["sex"].to_pylist()).count("*") == 2
    attack = release.attacked().attacks.named("downcoding")
    assert attack.intruders["cells"].claims == attack.successes == 2  # one of the two in town c is f, the other m
    (finding,) = labelled(release.findings)
    assert finding.people == 2


@pytest.mark.parametrize(("cells", "expected"), [("median", 2), ("mode", 2), ("mean", 0)])
def test_a_mode_and_the_median_of_an_odd_number_of_records_occur(cells: str, expected: int) -> None:
    """Two classes of three: each prints a value that one of its people has, unless it prints a mean."""
    asked = {
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}, "cells": cells}},
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": "mondrian"},
    }
    release = shoal.anonymize(pa.table({"age": [21, 22, 23, 41, 42, 43]}), asked)
    assert release.attacked().attacks.named("downcoding").successes == expected
    assert sum(finding.people or 0 for finding in labelled(release.findings)) == expected


def test_a_policy_says_that_labels_are_tight_where_the_original_is_unknown() -> None:
    """Two boxes that do not cross could be labels of any kind; the policy tells which they are."""
    asked = {
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}, "cells": "tight-range"}},
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": "mondrian"},
    }
    released = pa.table({"age": ["21-23"] * 3 + ["41-43"] * 3})
    assert shoal.attack(released, policy=asked).named("downcoding").successes == 4  # both ends of both ranges
    assert shoal.attack(released, quasi=["age"]).named("downcoding").successes == 0
