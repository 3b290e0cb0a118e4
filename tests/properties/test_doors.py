"""All who judge a release judge it alike: anonymize, check, verify, apply, frontier; on drawn tables and policies."""

import random

import pandas as pd
import pytest

import shoal
from examples import some
from shoal.errors import CannotTellError, InfeasibleError, OutOfTimeError, VerificationError
from shoal.release.replay import described, replay

MODELS = [
    {"model": "k-anonymity", "k": 2},
    {"model": "k-anonymity", "k": 3},
    {"model": "maximum-risk", "max": 0.4},
    {"model": "distinct-l-diversity", "l": 2},
    {"model": "t-closeness", "t": 0.4},
    {"model": "average-risk", "max": 0.3},
    {"model": "sample-uniqueness", "max": 0.1},
    {"model": "singling-out-risk", "max": 0.1},
    {"model": "linkage-risk", "max": 0.4},
    {"model": "inference-risk", "max": 0.5},
]


def drawn(seed: int) -> tuple[pd.DataFrame, dict]:
    draw = random.Random(seed)
    n = draw.randint(12, 40)
    table = pd.DataFrame(
        {
            "who": [f"p{draw.randrange(n)}" for _ in range(n)],
            "a": [draw.choice(["k1", "k2", "l1", "l2", None]) for _ in range(n)],
            "b": [draw.choice("xyz") for _ in range(n)],
            "s": [draw.choice(["flu", "gout", "cold"]) for _ in range(n)],
        }
    )
    nulls = draw.choice(["category", "category", "wildcard"])
    release = {"nulls": nulls, "max_suppression": draw.choice([0.0, 0.2])}
    if nulls == "category" and draw.random() < 0.3:
        release["entity"] = "who"
    fields = {
        "columns": {
            "who": {"role": "identifier"},
            "a": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "b": {"role": "quasi"},
            "s": {"role": "sensitive"},
        },
        "require": draw.sample(MODELS, draw.randint(1, 3)),
        "release": release,
    }
    return table, fields


@pytest.mark.parametrize("seed", some(range(25), always=12))
def test_what_is_released_is_refused_by_nobody_and_what_is_refused_by_everybody(seed: int) -> None:
    table, fields = drawn(seed)
    try:
        release = shoal.anonymize(table, fields)
    except (InfeasibleError, OutOfTimeError, VerificationError, CannotTellError):
        (point,) = shoal.frontier(table, fields, max_suppression=[fields["release"]["max_suppression"]])
        assert not point.feasible
        return
    (point,) = shoal.frontier(table, fields, max_suppression=[fields["release"]["max_suppression"]])
    assert point.feasible
    with_original = shoal.check(release.table, fields, original=table)
    assert with_original.outcome != "fails"
    policy = shoal.Policy.of(fields)
    if not policy.limits and policy.release.entity is None:
        assert with_original.outcome == "holds"
    assert shoal.check(release.table, fields).outcome != "holds" or not policy.limits
    verified = shoal.verify_certificate(release.certificate, release.table)
    assert verified.outcome != "fails", verified.sentence
    assert replay(described(release), table).verdicts.holds


@pytest.mark.parametrize("seed", some(range(100, 125), always=12))
def test_a_raw_table_that_check_refuses_is_neither_verified_nor_written_by_apply(seed: int) -> None:
    table, fields = drawn(seed)
    free = {**fields, "require": [{"model": "k-anonymity", "k": 1}]}
    raw = shoal.anonymize(table, free)
    strict = raw.policy.model_copy(update={"require": shoal.Policy.of(fields).require})
    found = shoal.check(raw.table, strict, original=table)
    forged = raw.certificate
    forged["policy"]["require"] = fields["require"]
    forged["requirements"] = [
        {"asked": verdict.asked, "holds": True, "figure": verdict.figure, "worst": 1.0, "classes": 0, "records": 0}
        for verdict in found.verdicts
    ]
    verified = shoal.verify_certificate(forged, raw.table, original=table)
    by_class = [line.holds for line in verified if line.required]
    assert by_class.count(False) >= sum(verdict.outcome == "fails" for verdict in found.verdicts)
    if found.outcome == "fails":
        assert verified.outcome == "fails"
    assert not (verified.outcome == "holds" and found.outcome != "holds")
    kept = described(raw)
    kept["policy"]["require"] = fields["require"]
    try:
        done = replay(kept, table)
    except (InfeasibleError, VerificationError, CannotTellError):
        return
    assert shoal.check(done.table, strict, original=table).outcome != "fails"
