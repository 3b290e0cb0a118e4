"""Aim at what is measured: the mildest requirements under which the limits on attacks hold.

The success of an attack is known only when a release is finished. So releases are made under stricter requirements
until the limits hold: k grows for limits on singling out and linkage, and the bound on what a class tells of a
sensitive value (``limited-gain``) shrinks for limits on inference. Of each ladder the mildest step is found by
bisection, as if a stricter step never let an attack succeed more often. For a limit on what labels give back, labels
that are fixed before classes are formed replace tight ones first. That a stricter step helps is not proved: a milder
step between two that fail is possible. What is returned was attacked itself, so the limits hold whatever the ladder
does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shoal.errors import CannotTellError, InfeasibleError, LimitExceededError
from shoal.models.measured import DowncodingRisk, PredicateRisk
from shoal.models.shares import LimitedGain
from shoal.models.size import KAnonymity
from shoal.policy import Policy
from shoal.text.log import log

Made = TypeVar("Made")
FACTORS = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 32.0)  # of k
GAINS = (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05)


def aimed(policy: Policy, make: Callable[[Policy], Made]) -> Made:
    """Return what ``make`` makes of the mildest policy under which it raises no error about limits.

    ``make`` attacks what it has made; it is called at most ten times.
    """
    plain = policy.with_release(aim=False)
    on_inference = [limit for limit in policy.limits if limit.question == "inference"]
    ladders: list[list[Policy]] = []
    if len(on_inference) < len(policy.limits):
        rest = _without(plain, on_inference)
        steps = [_with_k(rest, factor) for factor in FACTORS]
        if (
            any(isinstance(limit, DowncodingRisk | PredicateRisk) for limit in policy.limits)
            and (fixed := _fixed(rest)) is not rest
        ):
            steps = [rest, *(_with_k(fixed, factor) for factor in FACTORS)]
        ladders.append(steps)
    reached, result = plain, None
    for ladder in ladders:
        reached, result = _mildest(ladder, make)
    if on_inference:
        dropped = tuple(model for model in plain.require if model in on_inference and model not in reached.require)
        start = reached.model_copy(update={"require": (*reached.require, *dropped)})
        reached, result = _mildest([start, *(_with_gain(start, gain) for gain in GAINS)], make)
    if result is None:
        return make(plain)
    log.info("aim: the limits hold with %s", ", ".join(model.summary for model in reached.models))
    return result


def _mildest(ladder: Sequence[Policy], make: Callable[[Policy], Made]) -> tuple[Policy, Made]:
    """Return the first step whose limits hold, by bisection; a step that has no release is too strict."""
    best: tuple[Policy, Made] | None = None
    failed: Exception | None = None
    low, high = 0, len(ladder) - 1
    middle = 0  # often nothing has to be stricter
    while low <= high:
        try:
            best, high = (ladder[middle], make(ladder[middle])), middle - 1
        except (LimitExceededError, CannotTellError) as error:
            failed, low = error, middle + 1
        except InfeasibleError as error:
            failed, high = failed or error, middle - 1
        middle = (low + high) // 2
    if best is None:
        raise failed or InfeasibleError("no step of the ladder has a release")
    return best


def _with_k(policy: Policy, factor: float) -> Policy:
    """Return the policy with ``factor`` times its k, or with 2 times as much where it has none."""
    if factor == 1:
        return policy
    require = tuple(
        model.model_copy(update={"k": round(model.k * factor)}) if isinstance(model, KAnonymity) else model
        for model in policy.require
    )
    if not any(isinstance(model, KAnonymity) for model in require):
        require = (*require, KAnonymity(k=round(2 * factor)))
    return policy.model_copy(update={"require": require})


def _fixed(policy: Policy) -> Policy:
    """Return the policy with fixed ranges and sets instead of tight ones; itself if it has none."""
    fixed = {"tight-range": "range", "tight-set": "set"}
    columns = {name: column for name, column in policy.columns.items() if column.cells in fixed}
    if not columns:
        return policy
    return policy.with_columns(**{name: {"cells": fixed[column.cells]} for name, column in columns.items()})


def _with_gain(policy: Policy, gain: float) -> Policy:
    """Return the policy with a bound on what a class tells of every sensitive value; own bounds stay if stricter."""
    return policy.model_copy(update={"require": (*policy.require, LimitedGain(gain=gain))})


def _without(policy: Policy, limits: Sequence[object]) -> Policy:
    return policy.model_copy(update={"require": tuple(model for model in policy.require if model not in limits)})
