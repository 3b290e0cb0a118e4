"""Attacks against a second implementation that lists every pair of a person and a record."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from contract import TASKS, may_decline
from shoal.attacks.background import exclusion, relative
from shoal.attacks.candidates import candidate_view, secret_of
from shoal.attacks.complementary import complementary_release
from shoal.attacks.external import external_knowledge
from shoal.attacks.homogeneity import homogeneity
from shoal.attacks.identity import identity
from shoal.attacks.intruders import LIKELY, ROUNDS, SPECIFIC, UNIFORM
from shoal.attacks.risk import wilson
from shoal.attacks.similarity import meaning, similarity
from shoal.attacks.singling_out import singling_out
from shoal.attacks.skewness import closeness, skewness
from shoal.attacks.unsorted_matching import aligned
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


def stands(record, column, value):
    if column == "w":
        return value in COVERS[record]
    return NUMBERS[record][0] <= int(value) <= NUMBERS[record][1]


def extent(people, records):
    """Per record, how many combinations of the people's values it stands for, and their share of the release."""
    sizes, masses = np.ones(len(records["w"])), np.ones(len(records["w"]))
    for column in ("w", "x"):
        domain = sorted(set(people[column]))
        share = dict.fromkeys(domain, 1 / len(domain))
        start = dict(share)
        covers = {text: [v for v in domain if stands(text, column, v)] for text in set(records[column])}
        for _ in range(ROUNDS):
            fresh = {v: start[v] / len(records[column]) for v in domain}
            for text in records[column]:
                total = sum(share[v] for v in covers[text])
                for v in covers[text]:
                    fresh[v] += share[v] / total
            share = {v: x / sum(fresh.values()) for v, x in fresh.items()}
        for j, text in enumerate(records[column]):
            sizes[j] *= len(covers[text]) or 1
            masses[j] *= sum(share[v] for v in covers[text]) or 1
    return sizes, masses


def intruders(people, records, i, extents):
    """What each picks among the records that fit a person, and how likely it holds each of all to be the own one."""
    fits = fitting(people, records, i)
    sizes, masses = extents
    out = {UNIFORM: (fits, dict.fromkeys(fits, 1.0))}
    if fits:
        least = min(sizes[j] for j in fits)
        specific = [j for j in fits if sizes[j] < least * (1 + 1e-9)]
        out[SPECIFIC] = (specific, dict.fromkeys(specific, 1.0))
        least = min(masses[j] for j in fits)
        out[LIKELY] = ([j for j in fits if masses[j] < least * (1 + 1e-7)], {j: least / masses[j] for j in fits})
    else:
        out[SPECIFIC] = out[LIKELY] = ([], {})
    return out


def by_hand(people, records, owner):
    """Successes of each attack by each intruder, person by person."""
    names = ("single", "identity", "homogeneity", "exclusion", "relative", "external", "skew", "similar")
    out = {name: dict.fromkeys((UNIFORM, SPECIFIC, LIKELY), 0.0) for name in names}
    n = len(records["s"])
    whole = {v: records["s"].count(v) / n for v in set(records["s"])}
    span = max(map(int, whole)) - min(map(int, whole))
    extents = extent(people, records)
    for i, own in enumerate(people["s"]):
        for who, (picks, held) in intruders(people, records, i, extents).items():
            if not picks:
                continue
            fits = [records["s"][j] for j in picks]
            values = set(fits)
            sure = who != LIKELY or 1 / sum(held.values()) > 0.5
            out["single"][who] += len(fits) == 1 and sure and owner[i] in picks
            out["identity"][who] += (owner[i] in picks) / len(fits)
            out["homogeneity"][who] += values == {own}
            out["exclusion"][who] += own in values and len(values) <= 2
            if own in fits:
                others = list(fits)
                others.remove(own)
                if values == {own}:
                    out["relative"][who] += 1
                elif others:
                    # Each of the others may be the relative: without that record, is the own value the only one?
                    left = [set(fits[:j] + fits[j + 1 :]) == {own} for j, v in enumerate(fits) if v != own]
                    out["relative"][who] += sum(left) / len(others)
                out["external"][who] += len(set(others)) == 1
            total = sum(held.values())
            gain = {
                v: sum(x for j, x in held.items() if records["s"][j] == v) / total - whole[v]
                for v in {records["s"][j] for j in held}
            }
            best = max(gain.values())
            bets = sorted(v for v in gain if gain[v] > best - 1e-11)
            out["skew"][who] += own == bets[0]
            numbers = [int(v) for v in values]
            if span:
                near = max(numbers) - min(numbers) <= 0.5 * span
                out["similar"][who] += near and min(numbers) <= int(own) <= max(numbers) and own in whole
    return out


def test_every_attack_finds_what_listing_all_pairs_finds():
    random = np.random.default_rng(11)
    exposed = bounded = 0
    better = dict.fromkeys((SPECIFIC, LIKELY), 0)
    for i_case in range(250):
        people, records = case(random)
        owner = random.permutation(max(len(people["w"]), len(records["w"])))[: len(people["w"])]
        owner = np.where(owner < len(records["w"]), owner, -1)
        mine, theirs = pa.table(people), pa.table(records)
        seen = candidate_view(mine, theirs, ["w", "x"], owner=owner)
        found = secret_of(seen, "s", theirs, mine)
        for i in range(len(people["w"])):
            fits = np.flatnonzero(seen.fit(np.full(len(records["w"]), i), np.arange(len(records["w"]))))
            assert list(fits) == fitting(people, records, i)
        expected = by_hand(people, records, owner)
        got = {
            "single": singling_out(seen),
            "identity": identity(seen),
            "homogeneity": homogeneity(found),
            "exclusion": exclusion(found),
            "relative": relative(found),
            "skew": skewness(found),
        }
        means = meaning(found, None, within=0.5)
        if means is not None:
            got["similar"] = similarity(found, means)
        for name, risk in got.items():
            assert risk.attempts == len(people["w"])
            for who, one in risk.intruders.items():
                assert one.successes == pytest.approx(expected[name][who]), (name, who)
            best = risk.intruders[risk.intruder]
            assert risk.successes == best.successes
            assert best.above == max(one.above for one in risk.intruders.values())
            for who in {SPECIFIC, LIKELY} - risk.intruders.keys():  # left out where it picks what any does
                assert expected[name][who] == pytest.approx(expected[name][UNIFORM]), name
            if risk.intruder != UNIFORM:
                better[risk.intruder] += 1
        assert external_knowledge(found).successes == pytest.approx(expected["external"][UNIFORM])
        exposed += expected["homogeneity"][UNIFORM] > 0
        if i_case % 10:
            continue
        figures = shoal.measure(theirs, quasi=["w", "x"], sensitive=["s"])
        assert closeness(found) == pytest.approx(figures["t"])
        assert (seen.k, found.diversity) == (figures["k"], figures["l"])
        got["external"] = external_knowledge(found)
        for name, bound in (("homogeneity", 1), ("exclusion", 2), ("relative", 2), ("external", 2)):
            assert (got[name].bound == 0) == (figures["l"] > bound)
        classes = list(zip(records["w"], records["x"], strict=True))
        several = any(len({classes[j] for j in fitting(people, records, i)}) > 1 for i in range(len(people["w"])))
        assert (got["skew"].bound is None) == several  # the closeness of one class bounds nothing where several fit
        bounded += not several
        if not several:
            assert min(1, got["skew"].control.share + figures["t"]) - 1e-9 <= got["skew"].bound <= 1
        assert got["identity"].bound == 1 / figures["k"]
    assert exposed > 25
    assert bounded > 0
    assert min(better.values()) > 25


def test_two_releases_intersected_by_hand():
    random = np.random.default_rng(5)
    worked = 0
    for _ in range(150):
        people, one = case(random)
        _, two = case(random)
        two["s"][0] = people["s"][0]
        mine = pa.table(people)
        tables = [pa.table(r) for r in (one, two)]
        first, second = (secret_of(candidate_view(mine, r, ["w", "x"]), "s", r, mine) for r in tables)
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
    whole = candidate_view(people, records, ["a", "b"])
    monkeypatch.setattr("shoal.attacks.join.BLOCK", 7)
    pieces = candidate_view(people, records, ["b", "a"])
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
        seen = candidate_view(people, records, ["q"])
        found = secret_of(seen, "s", records, people)
        table = np.zeros((m + 1, n + 1), int)
        for i, mine in enumerate(records["s"].to_pylist()):
            for j, theirs in enumerate(people["s"].to_pylist()):
                table[i + 1, j + 1] = table[i, j] + 1 if mine == theirs else max(table[i, j + 1], table[i + 1, j])
        said = found.truth, found.of_record
        assert aligned(seen, said, np.arange(m), np.arange(n), 0) == table[m, n]


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
        assert not [note for note in found.notes if "nearest" in note or "match no value" in note]
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
