"""Wherever a policy is taken, it may be a Policy, the path of its file, or a dict."""

import inspect
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import shoal
from shoal.errors import PolicyError

PEOPLE = pa.table(
    {"age": ["31", "31", "36", "36", "51", "51", "57", "57"], "income": ["1", "2", "3", "4", "5", "6", "7", "8"]}
)
POLICY = {
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "income": {"role": "sensitive"},
    },
    "require": [{"model": "k-anonymity", "k": 3}],
    "release": {"label": "income"},
}
FAMILIES = ("shoal", "shoal.utility", "shoal.risk", "shoal.linkage", "shoal.masking")
LINKED = {"on": ["age"]}
COUNTED = {"count": True, "budget": "epsilon=1"}
DRAWN = {"columns": ["income"], "categories": {"income": ["1", "2"]}, "budget": "epsilon=1"}
CERTIFICATE = shoal.anonymize(PEOPLE, POLICY).certificate
CALLS = {
    "shoal.anonymize": lambda call, policy, release: call(PEOPLE, policy).certificate["levels"],
    "shoal.attack": lambda call, policy, release: call(release, original=PEOPLE, policy=policy).as_dict(),
    "shoal.compare_with_original": lambda call, policy, release: call(PEOPLE, release, policy).as_dict(),
    "shoal.check": lambda call, policy, release: call(release, policy).as_dict(),
    "shoal.compare": lambda call, policy, release: call(PEOPLE, policy, algorithms=["optimal"]).entries[0].loss,
    "shoal.explore": lambda call, policy, release: call(PEOPLE, policy, tolerable=0.5).as_dict(),
    "shoal.frontier": lambda call, policy, release: call(PEOPLE, policy, k=[2, 4]).as_dict(),
    "shoal.hierarchy": lambda call, policy, release: str(call(PEOPLE, "age", policy=policy)),
    "shoal.k_minimal": lambda call, policy, release: str(call(PEOPLE, policy)),
    "shoal.plan_query": lambda call, policy, release: call(PEOPLE, policy=policy, **COUNTED).as_dict(),
    "shoal.query": lambda call, policy, release: call(PEOPLE, policy=policy, **COUNTED).cost.as_dict(),
    "shoal.plan_synthesis": lambda call, policy, release: call(PEOPLE, policy=policy, **DRAWN).as_dict(),
    "shoal.synthesize": lambda call, policy, release: call(PEOPLE, policy=policy, **DRAWN).table.column_names,
    "shoal.verify_certificate": lambda call, policy, release: call(CERTIFICATE, release, policy=policy).as_dict(),
    "shoal.utility.classification": lambda call, policy, release: call(PEOPLE, release, policy),
    "shoal.utility.coefficients_kept": lambda call, policy, release: str(call(PEOPLE, release, policy)),
    "shoal.utility.query_error": lambda call, policy, release: str(call(PEOPLE, release, policy)),
    "shoal.utility.statistics_kept": lambda call, policy, release: str(call(PEOPLE, release, policy)),
    "shoal.utility.utility": lambda call, policy, release: str(call(PEOPLE, release, policy)),
    "shoal.linkage.distance_linkage": lambda call, policy, release: str(call(PEOPLE, release, policy=policy, **LINKED)),
    "shoal.linkage.pattern_counts": lambda call, policy, release: str(call(PEOPLE, release, policy=policy, **LINKED)),
    "shoal.linkage.probabilistic_linkage": lambda call, policy, release: str(
        call(PEOPLE, release, policy=policy, **LINKED)
    ),
    "shoal.linkage.worst_case": lambda call, policy, release: str(call(PEOPLE, release, policy=policy, **LINKED)),
}


def taking_a_policy() -> set[str]:
    """Every public function with a parameter of that name."""
    found = set()
    for family in FAMILIES:
        module = import_module(family)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) and "policy" in inspect.signature(value).parameters:
                found.add(f"{family}.{name}")
    return found


def test_every_function_that_takes_a_policy_is_tried():
    assert taking_a_policy() == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_a_policy_a_path_and_a_dict_mean_the_same(name, tmp_path):
    family, _, function = name.rpartition(".")
    call = getattr(import_module(family), function)
    asked = shoal.Policy.of(POLICY)
    asked.save(tmp_path / "policy.toml")
    release = shoal.anonymize(PEOPLE, asked).table
    given = [asked, POLICY, tmp_path / "policy.toml", str(tmp_path / "policy.toml")]
    answers = [CALLS[name](call, policy, release) for policy in given]
    assert answers[1:] == answers[:1] * 3
    with pytest.raises(PolicyError, match="cannot be read"):
        CALLS[name](call, Path("nowhere.toml"), release)
    with pytest.raises(PolicyError, match=r"must be a shoal.Policy, the path of a TOML file or a dict, not int"):
        CALLS[name](call, 5, release)
