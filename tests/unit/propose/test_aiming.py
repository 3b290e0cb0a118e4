"""Aiming at measured limits: the mildest step of a ladder whose release withstands the attacks."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import LimitExceededError
from shoal.models.shares import LimitedGain
from shoal.policy import Policy
from shoal.propose.aiming import FACTORS, GAINS, aimed

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
    assert shoal.check(release.table, release.policy, original=PEOPLE).holds
    required = release.certificate["policy"]["require"]
    if limit == "linkage":
        assert required[0]["k"] > 2
    else:
        assert required[-1]["model"] == "limited-gain"


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
