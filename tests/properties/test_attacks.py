"""What theory promises, an intruder cannot break; what it does not, raw data show."""

import numpy as np
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.errors import InfeasibleError

TOLERANCE = 1e-9


@st.composite
def tables(draw):
    n = draw(st.integers(4, 24))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    n_values = draw(st.integers(2, 5))
    return pa.table({
        "age": [str(v) for v in random.integers(20, 20 + draw(st.integers(1, 40)), n)],
        "zip": [f"35{v}" for v in random.integers(100, 100 + draw(st.integers(1, 30)), n)],
        "s": [str(v) for v in random.integers(0, n_values, n)],
    })  # fmt: skip


def policy(algorithm, *require, **release):
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "s": {"role": "sensitive"},
        },
        "require": list(require),
        "release": {"algorithm": algorithm, **release},
    })  # fmt: skip


def attacked(table, asked):
    try:
        release = shoal.anonymize(table, asked)
    except InfeasibleError:
        assume(False)
    assume(release.rows.n_records > 0)
    found = shoal.attack(release, sample=None)
    assert not [note for note in found.notes if "nearest" in note or "match no value" in note]
    return release, found


# Of every kind of recoding: one level per column, cuts, cells, records or columns hidden, local ones.
ALGORITHMS = st.sampled_from([
    "optimal", "datafly", "top_down", "k_optimize", "mondrian", "mondrian_relaxed", "forest", "forest_generalize",
    "cover", "suppress_cells", "suppress_records", "suppress_columns", "local_suppression", "mdav", "local",
])  # fmt: skip


@examples(30)
@given(tables(), ALGORITHMS, st.integers(1, 5), st.sampled_from([0.0, 0.2]))
def test_nobody_is_linked_with_a_better_chance_than_one_in_k(table, algorithm, k, gone):
    release, found = attacked(table, policy(algorithm, {"model": "k-anonymity", "k": k}, max_suppression=gone))
    assert release.measured["k"] >= k
    linked = found.named("identity linking")
    assert max(one.successes for one in linked.intruders.values()) <= linked.attempts / k + TOLERANCE
    assert linked.share <= 1 / k + TOLERANCE
    assert k == 1 or found.named("singling out").successes == 0
    _within_bounds(found, everybody=release.suppressed == 0)


@st.composite
def recodings(draw):
    """People in classes of at least k, each with a tuple that stands for all of it, however it is written."""
    k = draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = random.integers(k, 2 * k + 1, draw(st.integers(1, 6)))
    people, records = [], []
    for size in sizes:
        ages, zips = random.integers(20, 20 + draw(st.integers(1, 40)), size), random.integers(0, 30, size)
        jobs = random.choice(list("abcd"), size)
        age, code, job = _label_of(random, ages), _masked(random, [f"35{v:03}" for v in zips]), _set_of(random, jobs)
        for mine in zip(ages.tolist(), zips.tolist(), jobs, strict=True):
            value = str(random.integers(0, 3))
            people.append((str(mine[0]), f"35{mine[1]:03}", str(mine[2]), value))
            records.append((age, code, job, value))
    order = random.permutation(len(people))
    names = ("age", "zip", "job", "s")
    ids = [str(i) for i in range(len(people))]
    original = {"id": ids, **dict(zip(names, map(list, zip(*people, strict=True)), strict=True))}
    release = {"id": [ids[i] for i in order]}
    release |= {name: [records[i][j] for i in order] for j, name in enumerate(names)}
    return k, pa.table(original), pa.table(release)


def _label_of(random, ages):
    low, high = int(ages.min()), int(ages.max())
    wide = [low - int(random.integers(0, 10)), high + int(random.integers(0, 10))]
    styles = ["*", f"{wide[0]}-{wide[1]}", f"[{wide[0]},{wide[1] + 1})", f">={wide[0]}", f"<{wide[1] + 1}"]
    if low // 10 == high // 10:
        styles.append(f"{low // 10}0s")
    return str(random.choice([*styles, str(low)] if low == high else styles))


def _masked(random, codes):
    n = next((i for i in range(5, 0, -1) if len({code[:i] for code in codes}) == 1), 0)
    kept = codes[0][: int(random.integers(0, n + 1))]
    return kept + str(random.choice(["*", "x"])) * (5 - len(kept)) if kept else "*"


def _set_of(random, jobs):
    members = sorted({*jobs.tolist(), *random.choice(list("abcd"), int(random.integers(0, 3))).tolist()})
    return members[0] if len(members) == 1 else str(random.choice(["{" + ", ".join(members) + "}", "*"]))


@examples(40)
@given(recodings(), st.booleans())
def test_whatever_the_recoding_nobody_exceeds_one_in_k_with_nothing_but_the_release(recoded, told):
    k, original, release = recoded
    keys = list(zip(*(release[name].to_pylist() for name in ("age", "zip", "job")), strict=True))
    k = max(k, min(keys.count(key) for key in keys))
    roles = {"quasi": ["age", "zip", "job"], "sensitive": ["s"]}
    found = shoal.attack(release, original=original, sample=None, id="id" if told else None, **roles)
    linked = found.named("identity linking")
    assert max(one.successes for one in linked.intruders.values()) <= linked.attempts / k + TOLERANCE
    assert linked.range[1] <= 1 / k + TOLERANCE
    if k > 1:
        assert all(one.successes == 0 for one in found.named("singling out").intruders.values())
    _within_bounds(found, everybody=False)


@examples(12)
@given(tables(), st.integers(2, 5), st.sampled_from(["mean", "median", "range"]))
def test_no_more_do_means_of_classes_give_away(table, k, cells):
    asked = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}, "cells": cells}
    policy = shoal.Policy.of({
        "columns": {"age": asked, "zip": {"role": "plain"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": "mdav"},
    })  # fmt: skip
    assume(table.num_rows >= k)
    found = shoal.attack(shoal.anonymize(table, policy), sample=None).named("identity linking")
    assert found.share <= 1 / k + TOLERANCE


@examples(12)
@given(tables(), st.sampled_from(["optimal", "mondrian"]), st.integers(2, 4), st.sampled_from([0.0, 0.2]))
def test_certainty_needs_as_many_values_as_the_class_has(table, algorithm, l, gone):
    asked = policy(algorithm, {"model": "distinct-l-diversity", "l": l}, max_suppression=gone)
    _, found = attacked(table, asked)
    assert found.named("homogeneity").successes == 0
    if l > 2:
        for name in ("exclusion", "relative", "external knowledge"):
            assert found.named(name).successes == 0, name
    _within_bounds(found, everybody=False)


@examples(12)
@given(tables(), st.sampled_from([0.1, 0.3, 0.5]))
def test_a_close_release_tells_no_more_than_t_beyond_the_whole(table, t):
    asked = policy("optimal", {"model": "t-closeness", "t": t, "distance": "equal"})
    _, found = attacked(table, asked)
    risk = found.named("skewness")
    assert risk.share <= risk.control.share + t + TOLERANCE
    _within_bounds(found, everybody=True)


@examples(12)
@given(tables(), st.sampled_from([0.4, 0.6]))
def test_no_model_predicts_better_than_the_greatest_share_allows(table, alpha):
    _, found = attacked(table, policy("optimal", {"model": "alpha-k-anonymity", "alpha": alpha, "k": 2}))
    assert found.named("inference").share <= alpha + TOLERANCE


def _within_bounds(found, *, everybody):
    for risk in found:
        assert -TOLERANCE <= risk.successes <= risk.attempts + TOLERANCE
        low, high = risk.interval
        assert 0 <= low <= risk.share + TOLERANCE
        assert risk.share - TOLERANCE <= high <= 1
        assert 0 <= risk.above <= 1
        # Bounds on guesses hold for the people of the release as a whole; those on certainty and identity for each.
        if risk.bound is not None and (everybody or risk.name not in ("skewness", "inference")):
            assert risk.share <= risk.bound + TOLERANCE, risk.name


@examples(12)
@given(tables())
def test_raw_data_are_linked_as_often_as_records_are_unique(table):
    found = shoal.attack(table, quasi=["age", "zip"], sensitive=["s"])
    keys = list(zip(table["age"].to_pylist(), table["zip"].to_pylist(), strict=True))
    assert found.named("singling out").successes == sum(keys.count(key) == 1 for key in keys)
    assert abs(found.named("identity linking").successes - len(set(keys))) < TOLERANCE
    if len(set(keys)) == len(keys):
        for name in ("identity linking", "homogeneity", "inference", "skewness"):
            assert found.named(name).share == 1, name


@examples(12)
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_people_and_records_does_not_matter(table, random):
    release = shoal.anonymize(table, policy("optimal", {"model": "k-anonymity", "k": 2})).table
    n = table.num_rows
    mixed = release.take(pa.array(random.sample(range(n), n)))
    others = table.take(pa.array(random.sample(range(n), n)))
    roles = {"quasi": ["age", "zip"], "sensitive": ["s"]}
    one, two = shoal.attack(release, original=table, **roles), shoal.attack(mixed, original=others, **roles)
    for mine, theirs in zip(one, two, strict=True):
        if mine.name != "unsorted matching":
            assert abs(mine.successes - theirs.successes) < TOLERANCE, mine.name
