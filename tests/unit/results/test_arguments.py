"""Numbers among the arguments: a wrong kind is an error of shoal's with the name, never a TypeError."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import smc

ROWS = pa.table(
    {
        "who": ["a", "b"] * 20,
        "ward": ["A", "B"] * 20,
        "x": [1.0, 2.0, 5.0, 9.0] * 10,
        "y": list(np.arange(40.0) ** 2 % 7),
    }
)


def queried(**given: Any) -> Any:
    return shoal.query(ROWS, budget="epsilon=1", count=True, entity="who", **given)


def synthesized(**given: Any) -> Any:
    return shoal.synthesize(
        ROWS, budget="epsilon=1", columns=["ward"], categories={"ward": ["A", "B"]}, entity="who", **given
    )


def checked(**given: Any) -> Any:
    return shoal.check_output(ROWS, by=["who"], **given)


def regressed(**given: Any) -> Any:
    return shoal.check_regression(ROWS, value="y", on=["x"], **given)


def integral(**given: Any) -> Any:
    return shoal.integral_privacy(ROWS, "mean", "x", **({"step": 1} | given))


def planned(**given: Any) -> Any:
    return smc.SharePlan(count=True, **given)


@pytest.mark.parametrize("wrong", [True, math.nan, "2", 1.5])
@pytest.mark.parametrize(
    ("run", "name"),
    [
        *((queried, name) for name in ("contributions", "people", "records_per_person")),
        *((synthesized, name) for name in ("contributions", "rows", "seed")),
        *((checked, name) for name in ("min_count",)),
        *((regressed, name) for name in ("degrees", "min_count")),
        *((integral, name) for name in ("k", "subsets", "depth", "seed")),
        *((planned, name) for name in ("at_least", "at_most", "rows_per_person")),
    ],
)
def test_no_whole_number(run: Any, name: str, wrong: Any) -> None:
    with pytest.raises(shoal.PolicyError, match=f"{name} must be a whole number"):
        run(**{name: wrong})


@pytest.mark.parametrize("wrong", [True, math.nan, "2", -1.5])
@pytest.mark.parametrize(
    ("run", "name"),
    [
        (queried, "confidence"),
        (synthesized, "confidence"),
        *((checked, name) for name in ("p", "protection", "time_limit")),
        (regressed, "leverage"),
        *((integral, name) for name in ("share", "max_share", "step")),
    ],
)
def test_no_number(run: Any, name: str, wrong: Any) -> None:
    with pytest.raises(shoal.PolicyError, match=f"{name} must be"):
        run(**{name: wrong})


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert len(queried(contributions=np.int64(2))) == 1
