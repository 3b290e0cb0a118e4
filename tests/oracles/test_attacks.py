"""Attacks against a second implementation that lists every pair of a person and a record."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from contract import TASKS, may_decline
from shoal.attacks.background import exclusion, relative
from shoal.attacks.complementary import complementary_release
from shoal.attacks.external import external_knowledge
from shoal.attacks.homogeneity import homogeneity
from shoal.attacks.identity import identity
from shoal.attacks.risk import wilson
from shoal.attacks.sight import secret, sight
from shoal.attacks.similarity import meaning, similarity
from shoal.attacks.singling_out import singling_out
from shoal.attacks.skewness import closeness, skewness
from shoal.attacks.unsorted import aligned
from shoal.errors import InfeasibleError, PolicyError
from shoal.search import SEARCHES

WORDS = ("aa", "ab", "ba", "bb")
COVERS = {"aa": {"aa"}, "ab": {"ab"}, "ba": {"ba"}, "bb": {"bb"}, "a*": {"aa", "ab"}, "*b": {"ab", "bb"},
          "{aa, bb}": {"aa", "bb"}, "*": set(WORDS), "**": set(WORDS)}  # fmt: skip
NUMBERS = {"1-2": (1, 2), "[2, 4)": (2, 3), ">=3": (3, 9), "< 3": (0, 2), "4": (4, 4), "*": (0, 9), "(1, 4]": (2, 4)}


def case(random):
    n, m = int(random.integers(1, 9)), int(random.integers(1, 9))
    people = {
        "w": list(random.choice(WORDS, n)),
        "x": [str(v) for v in random.integers(1, 5, n)],
        "s": [str(v) for v in random.integers(1, 4, n)],
    }
    records = {
        "w": list(random.choice(list(COVERS), m)),
        "x": list(random.choice(list(NUMBERS), m)),
        "s": [str(v) for v in random.integers(1, 4, m)],
    }
    records["s"][0] = people["s"][0]  # at least one value in common
    return people, records


def fitting(people, records, i):
    return [
        j
        for j in range(len(records["w"]))
        if people["w"][i] in COVERS[records["w"][j]]
        and NUMBERS[records["x"][j]][0] <= int(people["x"][i]) <= NUMBERS[records["x"][j]][1]
    ]


def by_hand(people, records):
    """Successes of each attack, person by person."""
    out = dict.fromkeys(
        ("single", "identity", "homogeneity", "exclusion", "relative", "external", "skew", "similar"), 0.0
    )
    n = len(records["s"])
    whole = {v: records["s"].count(v) / n for v in set(records["s"])}
    span = max(map(int, whole)) - min(map(int, whole))
    for i, own in enumerate(people["s"]):
        fits = [records["s"][j] for j in fitting(people, records, i)]
        if not fits:
            continue
        values = set(fits)
        out["single"] += len(fits) == 1
        out["identity"] += 1 / len(fits)
        out["homogeneity"] += values == {own}
        out["exclusion"] += own in values and len(values) <= 2
        if own in fits:
            others = list(fits)
            others.remove(own)
            if values == {own}:
                out["relative"] += 1
            elif others:
                # Each of the others may be the relative: without that record, is the own value the only one?
                left = [set(fits[:j] + fits[j + 1 :]) == {own} for j, v in enumerate(fits) if v != own]
                out["relative"] += sum(left) / len(others)
            out["external"] += len(set(others)) == 1
        gain = {v: fits.count(v) / len(fits) - whole[v] for v in values}
        best = max(gain.values())
        bets = sorted(v for v in values if gain[v] == best)
        out["skew"] += own == bets[0]
        numbers = [int(v) for v in values]
        if span:
            near = max(numbers) - min(numbers) <= 0.5 * span
            out["similar"] += near and min(numbers) <= int(own) <= max(numbers) and own in whole
    return out


def test_every_attack_finds_what_listing_all_pairs_finds():
    random = np.random.default_rng(11)
    exposed = 0
    for i_case in range(250):
        people, records = case(random)
        mine, theirs = pa.table(people), pa.table(records)
        seen = sight(mine, theirs, ["w", "x"])
        found = secret(seen, "s", theirs, mine)
        for i in range(len(people["w"])):
            fits = np.flatnonzero(seen.fit(np.full(len(records["w"]), i), np.arange(len(records["w"]))))
            assert list(fits) == fitting(people, records, i)
        expected = by_hand(people, records)
        got = {
            "single": singling_out(seen),
            "identity": identity(seen),
            "homogeneity": homogeneity(found),
            "exclusion": exclusion(found),
            "relative": relative(found),
            "external": external_knowledge(found),
            "skew": skewness(found),
        }
        means = meaning(found, None, within=0.5)
        if means is not None:
            got["similar"] = similarity(found, means)
        for name, risk in got.items():
            assert risk.attempts == len(people["w"])
            assert risk.successes == pytest.approx(expected[name]), name
        exposed += expected["homogeneity"] > 0
        if i_case % 10:
            continue
        figures = shoal.measure(theirs, quasi=["w", "x"], sensitive=["s"])
        assert closeness(found) == pytest.approx(figures["t"])
        assert (seen.k, found.diversity) == (figures["k"], figures["l"])
        for name, bound in (("homogeneity", 1), ("exclusion", 2), ("relative", 2), ("external", 2)):
            assert (got[name].bound == 0) == (figures["l"] > bound)
        blind = got["skew"].control.share
        assert got["skew"].bound == pytest.approx(min(1, blind + figures["t"]))
        assert got["identity"].bound == 1 / figures["k"]
    assert exposed > 25


def test_two_releases_intersected_by_hand():
    random = np.random.default_rng(5)
    worked = 0
    for _ in range(150):
        people, one = case(random)
        _, two = case(random)
        two["s"][0] = people["s"][0]
        mine = pa.table(people)
        first, second = (secret(sight(mine, pa.table(r), ["w", "x"]), "s", pa.table(r), mine) for r in (one, two))
        expected = 0
        for i, own in enumerate(people["s"]):
            both = [{r["s"][j] for j in fitting(people, r, i)} for r in (one, two)]
            expected += both[0] & both[1] == {own}
        assert complementary_release(first, second).successes == expected
        worked += expected > 0
    assert worked > 15


def test_the_join_finds_the_same_in_small_pieces(monkeypatch):
    random = np.random.default_rng(2)
    n = 300
    people = pa.table(
        {"a": [str(v) for v in random.integers(0, 40, n)], "b": [str(v) for v in random.integers(0, 9, n)]}
    )
    records = pa.table({
        "a": [f"{v}-{v + int(w)}" for v, w in zip(random.integers(0, 40, n), random.integers(1, 9, n), strict=True)],
        "b": random.choice([*map(str, range(9)), "*", "{1, 2}"], n),
    })  # fmt: skip
    whole = sight(people, records, ["a", "b"])
    monkeypatch.setattr("shoal.attacks.sight.BLOCK", 7)
    pieces = sight(people, records, ["b", "a"])
    assert (whole.candidates[whole.kind_of] == pieces.candidates[pieces.kind_of]).all()
    lows = [tuple(map(int, text.split("-"))) for text in records["a"].to_pylist()]
    for i in range(0, n, 17):
        a, b = int(people["a"][i].as_py()), people["b"][i].as_py()
        fits = sum(
            low <= a <= high and (text in (b, "*") or (text == "{1, 2}" and b in "12"))
            for (low, high), text in zip(lows, records["b"].to_pylist(), strict=True)
        )
        assert whole.candidates[whole.kind_of[i]] == fits


def test_order_is_a_longest_common_subsequence():
    random = np.random.default_rng(3)
    for _ in range(60):
        n, m = random.integers(1, 10, 2)
        people = pa.table({"q": ["a"] * int(n), "s": [str(v) for v in random.integers(0, 4, n)]})
        records = pa.table({"q": ["a"] * int(m), "s": [str(v) for v in random.integers(0, 4, m)]})
        if not set(people["s"].to_pylist()) & set(records["s"].to_pylist()):
            continue
        seen = sight(people, records, ["q"])
        found = secret(seen, "s", records, people)
        table = np.zeros((m + 1, n + 1), int)
        for i, mine in enumerate(records["s"].to_pylist()):
            for j, theirs in enumerate(people["s"].to_pylist()):
                table[i + 1, j + 1] = table[i, j] + 1 if mine == theirs else max(table[i, j + 1], table[i + 1, j])
        assert aligned(seen, [found], np.arange(m), 0) == table[m, n]


@pytest.mark.parametrize("algorithm", SEARCHES)
def test_whatever_a_search_writes_is_read_and_stays_within_the_bounds(algorithm):
    for name in ("k, some suppressed", "k and distinct values"):
        task = TASKS[name]
        try:
            found = shoal.attack(shoal.anonymize(task.frame, task.policy(algorithm)))
        except PolicyError:
            assert may_decline(task, algorithm)
            continue
        except InfeasibleError:
            continue
        assert not [note for note in found.notes if "nearest" in note or "stand for no value" in note]
        assert found.named("identity linking").share <= 1 / task.require[0]["k"]
        for risk in found:
            if risk.bound is not None and risk.name not in ("skewness", "inference"):
                assert risk.share <= risk.bound + 1e-9


# ── Intervals ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("rate", "attempts"), [(0.02, 200), (0.1, 60), (0.33, 45), (0.5, 25), (0.9, 80)])
def test_intervals_cover_the_rate_that_successes_were_drawn_with(rate, attempts):
    successes = np.random.default_rng(4).binomial(attempts, rate, 4000)
    ends = {s: wilson(int(s), attempts) for s in set(successes.tolist())}
    covered = np.mean([ends[s][0] <= rate <= ends[s][1] for s in successes.tolist()])
    assert 0.92 <= covered <= 0.985


def test_intervals_of_attacks_on_samples_cover_the_share_of_all():
    random = np.random.default_rng(8)
    n = 1500
    people = pa.table({"age": [str(v) for v in random.integers(0, 450, n)], "s": random.choice(["a", "b", "c"], n)})
    roles = {"quasi": ["age"], "sensitive": ["s"]}
    whole = shoal.attack(people, original=people, sample=None, **roles)
    names = ("singling out", "homogeneity", "inference", "exclusion")
    truth = {name: whole.named(name).share for name in names}
    assert all(0.02 < truth[name] < 0.98 for name in names)
    covered = dict.fromkeys(names, 0)
    for seed in range(25):
        found = shoal.attack(people, original=people, sample=150, seed=seed, **roles)
        for name in names:
            low, high = found.named(name).interval
            covered[name] += low <= truth[name] <= high
    assert min(covered.values()) >= 21
