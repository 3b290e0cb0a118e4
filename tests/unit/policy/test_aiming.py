"""Aiming at measured limits: the mildest step of a ladder whose release withstands the attacks."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import LimitExceededError
from shoal.models.shares import LimitedGain
from shoal.policy import Policy
from shoal.policy.aiming import FACTORS, GAINS, aimed

DRAW = np.random.default_rng(7)
PEOPLE = pd.DataFrame({"age": DRAW.integers(20, 70, 120), "ill": DRAW.choice(["flu", "gout", "cold"], 120)})


def asking(**limits: float) -> Policy:
    return Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [2, 10, 20]}, "cells": "range"},
                "ill": {"role": "sensitive"},
            },
            "require": [
                {"model": "k-anonymity", "k": 2},
                *({"model": f"{name}-risk", "max": most} for name, most in limits.items()),
            ],
            "release": {"algorithm": "mondrian", "aim": True},
        }
    )


def test_ladders_get_stricter() -> None:
    assert all(one < next_ for one, next_ in pairwise(FACTORS))
    assert all(one > next_ for one, next_ in pairwise(GAINS))


def test_without_aiming_a_limit_only_refuses() -> None:
    with pytest.raises(shoal.VerificationError, match="inference risk"):
        shoal.anonymize(PEOPLE, asking(inference=0.2).with_release(aim=False))


@pytest.mark.parametrize(("limit", "most"), [("inference", 0.2), ("linkage", 0.15)])
def test_the_limit_holds_on_what_is_returned(limit: str, most: float) -> None:
    policy = asking(**{limit: most})
    release = shoal.anonymize(PEOPLE, policy)
    assert release.verdicts.holds
    checked = shoal.check(release.table, release.policy, original=PEOPLE)
    required = release.certificate["policy"]["require"]
    if limit == "linkage":
        assert required[0]["k"] > 2
        assert checked.outcome != "fails"  # only the release itself knows which record is whose
        attacks = release.attacks
        assert attacks is not None
        assert attacks.named("identity linking").above <= most
    else:
        assert checked.holds
        assert required[-1]["model"] == "limited-gain"


def test_fixed_labels_come_before_a_larger_k() -> None:
    """Tight labels give tuples back at any k; the mildest policy that withstands keeps its k and has fixed ones."""
    plain = asking(downcoding=0)
    tight = plain.with_columns(age={"cells": "tight-range"})
    with pytest.raises(LimitExceededError):
        shoal.anonymize(PEOPLE, tight.with_release(aim=False))
    release = shoal.anonymize(PEOPLE, tight)
    assert release.verdicts.holds
    assert release.policy.columns["age"].cells == "range"
    assert release.attacks is not None
    assert release.attacks.named("downcoding").successes == 0
    assert aimed(tight, lambda policy: policy).columns["age"].cells == "tight-range"  # if nothing fails


def test_strict_is_not_forgotten() -> None:
    named = PEOPLE.assign(email=[f"p{i}@example.org" for i in range(len(PEOPLE))])
    policy = asking(linkage=0.9).with_columns(email="plain")
    assert shoal.anonymize(named, policy).publication == "do not publish"
    with pytest.raises(shoal.PublicationError):
        shoal.anonymize(named, policy, strict=True)


def test_linkage_and_inference_together() -> None:
    release = shoal.anonymize(PEOPLE, asking(linkage=0.25, inference=0.3))
    assert release.verdicts.holds
    assert [limit.summary for limit in release.policy.limits] == [
        "linkage risk at most 0.25, measured",
        "inference risk at most 0.3, measured",
    ]


@pytest.mark.parametrize("needed", [*GAINS, None])
def test_the_mildest_step_is_found(needed: float | None) -> None:
    """On a ladder that keeps its law, the step before the one that is found fails."""
    asked: list[Policy] = []

    def make(policy: Policy) -> float | None:
        asked.append(policy)
        gain = next((model.gain for model in policy.models if isinstance(model, LimitedGain)), None)
        if needed is not None and (gain is None or gain > needed):
            raise LimitExceededError("too much")
        return gain

    assert aimed(asking(inference=0.1), make) == needed
    assert len(asked) <= 6
