"""Record linkage against double loops over all pairs, on thousands of small files."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linprog

from shoal.linkage import distance_linkage, pattern_counts, probabilistic_linkage, worst_case, worst_distance
from shoal.linkage.columns import side_by_side
from shoal.linkage.families import family
from shoal.linkage.kernels import distances_from
from shoal.linkage.measure import distance_terms
from shoal.linkage.nearest import Distinct, _by_blocks, _by_tree, _half, _halves, squared_between
from shoal.linkage.patterns import ByCode, exactly

WORDS = ("red", "rose", "blue", "navy")
NAMES = ("age", "hair", "zip")
CODES = ("351", "3512", "35138", "35142", "94138")


# A released cell is drawn as a meaning, and written down: the loops below know the meaning, shoal only the text.
def number(rng):
    low, high = sorted(int(x) for x in rng.integers(0, 12, 2))
    return [
        ("point", (low, low), str(low)),
        ("range", (low, high), f"{low}-{high}" if low < high else str(low)),
        ("range", (low, math.inf), f">={low}"),
        ("star", None, "*"),
    ][rng.choice(4, p=[0.4, 0.4, 0.1, 0.1])]


def word(rng):
    some = sorted(str(w) for w in rng.choice(WORDS, rng.integers(1, 4), replace=False))
    return [
        ("set", {some[0]}, some[0]),
        ("set", set(some), "{" + ", ".join(some) + "}"),
        ("star", None, "*"),
        ("null", None, None),
    ][rng.choice(4, p=[0.5, 0.3, 0.1, 0.1])]


def code(rng):
    text = str(rng.choice(CODES))
    kept = int(rng.integers(1, len(text)))
    prefix = text[:kept]
    inside = {c for c in CODES if c.startswith(prefix) and len(c) <= len(text)}
    return [("set", {text}, text), ("set", inside, prefix + "*" * (len(text) - kept)), ("star", None, "*" * 5)][
        rng.choice(3, p=[0.4, 0.5, 0.1])
    ]


def files(rng, n_known, n_released):
    known = pa.table(
        {
            "age": rng.integers(0, 12, n_known),
            "hair": pa.array(rng.choice([*WORDS, None], n_known).tolist(), pa.string()),
            "zip": rng.choice(CODES, n_known).tolist(),
        }
    )
    cells = [(number(rng), word(rng), code(rng)) for _ in range(n_released)]
    texts = zip(*([cell[2] for cell in row] for row in cells), strict=True)
    release = pa.table({name: pa.array(column, pa.string()) for name, column in zip(NAMES, texts, strict=True)})
    return known, release, cells


def apart(value, cell, nulls, deviation):
    kind, meaning, _ = cell
    missing = value is None
    if kind == "star" or (nulls == "wildcard" and (missing or kind == "null")):
        return 0.0
    if missing or kind == "null":
        return 0.0 if missing and kind == "null" else 1.0
    if isinstance(meaning, set):
        return 0.0 if value in meaning else 1.0
    return max(meaning[0] - value, value - meaning[1], 0) / deviation


def rows(table):
    return [tuple(row[name] for name in NAMES) for row in table.to_pylist()]


def deviation_of(known):
    ages = known["age"].to_numpy()
    return (np.std(ages, ddof=1) if len(ages) > 1 else 0.0) or 1.0


@pytest.mark.parametrize("nulls", ["category", "wildcard"])
def test_nearest_records_are_those_of_a_double_loop(nulls):
    rng = np.random.default_rng(5)
    for _ in range(80):
        known, release, cells = files(rng, int(rng.integers(1, 9)), int(rng.integers(1, 9)))
        truth = rng.integers(-1, len(release), len(known))
        found = distance_linkage(known, release, scale="original", nulls=nulls, truth=truth)
        deviation = deviation_of(known)
        correct = 0.0
        for i, row in enumerate(rows(known)):
            far = [math.fsum(apart(v, c, nulls, deviation) ** 2 for v, c in zip(row, r, strict=True)) for r in cells]
            nearest = [j for j, d in enumerate(far) if d <= min(far) + 1e-9]
            assert found.distance[i] == pytest.approx(math.sqrt(min(far)))
            assert (found.ties[i], found.rows[i]) == (len(nearest), nearest[0])
            correct += (truth[i] in nearest) / len(nearest)
        assert found.correct == pytest.approx(correct)
        assert found.of == (truth >= 0).sum()


def test_linking_the_other_way_round_is_the_same_loop():
    rng = np.random.default_rng(6)
    for _ in range(60):
        known, release, cells = files(rng, int(rng.integers(1, 9)), int(rng.integers(1, 9)))
        found = distance_linkage(known, release, scale="original", per="released")
        deviation = deviation_of(known)
        for j, cell in enumerate(cells):
            far = [
                sum(apart(v, c, "category", deviation) ** 2 for v, c in zip(row, cell, strict=True))
                for row in rows(known)
            ]
            assert found.distance[j] == pytest.approx(math.sqrt(min(far)))
            assert found.ties[j] == sum(d <= min(far) + 1e-9 for d in far)


def test_trees_and_blocks_find_the_same():
    rng = np.random.default_rng(7)
    for _ in range(60):
        q = int(rng.integers(1, 6))
        known, release = (rng.integers(0, 6, (int(rng.integers(2, 60)), q)) for _ in range(2))
        both = side_by_side(known, release)
        measured = distance_terms(both.columns)
        left, right = (Distinct.from_codes(codes) for codes in both.codes)
        by_tree, by_blocks = _by_tree(left, right, measured), _by_blocks(left, right, measured)
        np.testing.assert_allclose(by_tree.squared, by_blocks.squared, atol=1e-12)
        assert by_tree.ties.tolist() == by_blocks.ties.tolist()
        assert by_tree.rows.tolist() == by_blocks.rows.tolist()


def test_halves_of_the_columns_add_up_to_the_whole():
    rng = np.random.default_rng(14)
    for _ in range(12):
        # So few values that two halves have fewer tuples than the whole, which is when the columns are split.
        known, release = (rng.integers(0, [3, 3, 4, 2, 3], (size, 5)) for size in (150, 120))
        release[rng.random(release.shape) < 0.1] = 7
        weights = dict(zip("01234", rng.random(5).tolist(), strict=True))
        both = side_by_side(known, release, numeric=["0", "2"])
        measured = distance_terms(both.columns, weights=weights)
        assert all(len(half) > 0 for half in _halves(both.codes[1], measured))
        found = distance_linkage(known, release, numeric=["0", "2"], weights=weights)
        scaled = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in (known, release)]
        squared = (known[:, None] != release[None]).astype(float)
        for j in (0, 2):
            squared[:, :, j] = (scaled[0][:, None, j] - scaled[1][None, :, j]) ** 2
        far = squared @ np.array(list(weights.values()))
        nearest = far <= far.min(axis=1, keepdims=True) + 1e-9
        np.testing.assert_allclose(found.distance**2, far.min(axis=1), atol=1e-12)
        assert found.ties.tolist() == nearest.sum(axis=1).tolist()
        assert found.rows.tolist() == nearest.argmax(axis=1).tolist()


def test_the_kernel_adds_up_what_its_twin_does():
    rng = np.random.default_rng(8)
    for _ in range(15):
        known, release, _ = files(rng, 7, 9)
        both = side_by_side(known, release)
        measured = distance_terms(both.columns)
        left, right = both.codes
        out = np.empty(len(right))
        for i in range(len(left)):
            distances_from.py_func(i, _half(measured, left, right), out)
            twin = squared_between(measured, np.repeat(left[i : i + 1], len(right), axis=0), right)
            np.testing.assert_allclose(out, twin, atol=1e-12)


# ── Patterns ────────────────────────────────────────────────────────────────────────────────────────────────


def test_pattern_counts_are_those_of_enumeration_on_thousands_of_files():
    rng = np.random.default_rng(1)
    for _ in range(2000):
        q, n, m = (int(x) for x in rng.integers(1, [6, 12, 12]))
        top = int(rng.choice([1, 2, 4, 2**30]))
        known, released = (rng.integers(0, top + 1, (size, q)).astype(np.int32) for size in (n, m))
        released[rng.random(released.shape) < 0.3] = known[0, 0]
        pairs = ByCode(known, released)
        pattern = (known[:, None] == released[None]) @ (1 << np.arange(q))
        assert pairs.counts().tolist() == np.bincount(pattern.ravel(), minlength=1 << q).tolist()


def test_wide_keys_are_counted_too():
    rng = np.random.default_rng(2)
    known = rng.integers(0, 2**20, (40, 5)).astype(np.int32)  # 100 bits
    released = known[rng.permutation(40)].copy()
    released[rng.random(released.shape) < 0.5] += 1
    pattern = (known[:, None] == released[None]) @ (1 << np.arange(5))
    assert ByCode(known, released).counts().tolist() == np.bincount(pattern.ravel(), minlength=32).tolist()


def agree(value, cell):
    kind, meaning, _ = cell
    if value is None or kind in ("star", "null"):
        return False
    return value in meaning if isinstance(meaning, set) else meaning[0] <= value <= meaning[1]


def patterns_of(known, cells):
    return [
        [sum(agree(v, c) << j for j, (v, c) in enumerate(zip(row, r, strict=True))) for r in cells]
        for row in rows(known)
    ]


def test_generalized_values_agree_where_the_release_stands_for_them():
    rng = np.random.default_rng(3)
    for _ in range(150):
        known, release, cells = files(rng, int(rng.integers(1, 9)), int(rng.integers(1, 9)))
        found = Counter(pattern for row in patterns_of(known, cells) for pattern in row)
        counts = pattern_counts(known, release)
        assert counts.counts.tolist() == [found[pattern] for pattern in range(8)]
        assert counts.pairs == counts.counts.sum()


def linked_by_a_loop(found, pattern, truth):
    """Best pairs, ties and credit by looking at every pair."""
    weights = found.weights
    likely = (found.decisions == 1) | (weights > 0)
    correct = links = 0.0
    for i, row in enumerate(pattern):
        best = max((weights[p] for p in row if likely[p]), default=-math.inf)
        tied = [j for j, p in enumerate(row) if likely[p] and weights[p] == best]
        assert found.weight[i] == best
        assert found.ties[i] == len(tied)
        assert found.rows[i] == (tied[0] if tied else -1)
        if truth[i] in tied:
            correct += 1 / len(tied)
            links += (found.decisions[row[truth[i]]] == 1) / len(tied)
    assert found.correct == pytest.approx(correct)
    assert found.correct_links == pytest.approx(links)
    assert found.true_pairs == {
        name: sum(found.decisions[pattern[i][t]] == d for i, t in enumerate(truth) if t >= 0)
        for name, d in (("link", 1), ("clerical", 0), ("non_link", -1))
    }


def test_links_are_those_of_a_loop_over_all_pairs():
    rng = np.random.default_rng(4)
    for case in range(60):
        if case % 2:
            known, release, cells = files(rng, int(rng.integers(2, 12)), int(rng.integers(2, 12)))
            pattern = patterns_of(known, cells)
        else:
            q = int(rng.integers(1, 5))
            known = rng.integers(0, 4, (int(rng.integers(2, 15)), q))
            release = known[rng.integers(0, len(known), int(rng.integers(2, 15)))].copy()
            release[rng.random(release.shape) < 0.2] = 9
            pattern = ((known[:, None] == release[None]) @ (1 << np.arange(q))).tolist()
        truth = rng.integers(-1, len(release), len(known))
        found = probabilistic_linkage(
            known, release, truth=truth, false_link=float(rng.choice([0, 0.01, 0.2, 1])), max_iterations=40
        )
        linked_by_a_loop(found, pattern, truth.tolist())


def test_exclusion_over_supersets_is_its_definition():
    rng = np.random.default_rng(9)
    at_least = rng.integers(0, 1000, 16)
    exact = exactly(at_least)
    for s in range(16):
        assert at_least[s] == sum(int(exact[t]) for t in range(16) if t & s == s)


# ── The worst case ──────────────────────────────────────────────────────────────────────────────────────────


def most_found(known, release):
    """Every set of people, largest first, until weights find them all: linear programs with a margin."""
    n, q = known.shape
    squared = (known[:, None] - release[None]) ** 2
    gap = squared - squared[np.arange(n), np.arange(n)][:, None]
    sets = sorted(range(1 << n), key=lambda s: -s.bit_count())
    for s in sets:
        rows = [gap[i, j] for i in range(n) if s >> i & 1 for j in range(n) if j != i]
        if not rows:
            return 0
        solved = linprog(
            np.zeros(q), A_ub=-np.array(rows), b_ub=np.full(len(rows), -1e-4), A_eq=np.ones((1, q)), b_eq=[1]
        )
        if solved.status == 0:
            return s.bit_count()
    return 0


def test_the_proved_optimum_is_that_of_trying_every_set_of_people():
    rng = np.random.default_rng(11)
    for _ in range(5):
        known = rng.normal(size=(7, 3))
        release = known + rng.normal(size=known.shape) * [0.3, 1.0, 2.0]
        scaled = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in (known, release)]
        found = worst_case(known, release, family="mean")
        assert found.proved
        assert found.correct == most_found(*scaled)


def test_the_proof_needs_no_good_start(monkeypatch):
    for name in ("DRAWS", "STEPS", "ROUNDS"):
        monkeypatch.setattr(worst_distance, name, 0)
    rng = np.random.default_rng(15)
    for _ in range(4):
        known = rng.normal(size=(11, 4))
        release = known + rng.normal(size=known.shape) * [0.2, 0.3, 2.0, 2.0]
        scaled = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in (known, release)]
        found = worst_case(known, release)
        assert (found.correct, found.bound, found.proved) == (most_found(*scaled), found.correct, True)


def most_credit(known, release, family):
    """The same where records look alike: of all sets of people who can be found at once, the one worth most."""
    n, q = known.shape
    squared = (known[:, None] - release[None]) ** 2
    features = np.sort(squared, axis=2) if family == "owa" else squared
    credit = [1 / int((release == release[i]).all(axis=1).sum()) for i in range(n)]
    wrong = [[j for j in range(n) if (release[j] != release[i]).any()] for i in range(n)]
    worth = {s: sum(credit[i] for i in range(n) if s >> i & 1) for s in range(1 << n)}
    for s in sorted(worth, key=lambda s: -worth[s]):
        rows = [features[i, j] - features[i, i] for i in range(n) if s >> i & 1 for j in wrong[i]]
        if not rows:
            return worth[s]
        solved = linprog(
            np.zeros(q), A_ub=-np.array(rows), b_ub=np.full(len(rows), -1e-4), A_eq=np.ones((1, q)), b_eq=[1]
        )
        if solved.status == 0:
            return worth[s]
    return 0.0


@pytest.mark.parametrize("family", ["mean", "owa"])
@pytest.mark.parametrize("rounds", [None, 1, 2])
def test_no_distance_finds_more_than_the_bound_however_early_the_proof_ends(family, rounds, monkeypatch):
    for name in ("DRAWS", "STEPS", "ROUNDS"):
        monkeypatch.setattr(worst_distance, name, 0)
    solved = worst_distance._ParameterSearch._solved

    def few(search, left):
        """As if the time were over after so many programs."""
        search.n_solved = getattr(search, "n_solved", 0) + 1
        return None if rounds is not None and search.n_solved > rounds else solved(search, left)

    monkeypatch.setattr(worst_distance._ParameterSearch, "_solved", few)
    rng = np.random.default_rng(16)
    proved = 0
    for _ in range(12):
        known = rng.integers(0, 4, (7, 3)).astype(float)
        release = known + rng.integers(-1, 2, known.shape)
        release[rng.integers(0, 7)] = release[rng.integers(0, 7)]
        if (known.std(axis=0) == 0).any() or (release.std(axis=0) == 0).any():
            continue
        scaled = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in (known, release)]
        found = worst_case(known, release, family=family)
        best = most_credit(*scaled, family)
        assert found.correct <= best + 1e-9 <= found.bound + 2e-9
        assert found.proved == (abs(found.bound - found.correct) < 1e-9)
        proved += found.proved
    assert proved > (8 if rounds is None else 0)


def choquet_by_definition(d, capacity):
    """∫ μ{d ≥ t} dt, step by step."""
    total, below = 0.0, 0.0
    for step in sorted(set(d)):
        total += (step - below) * capacity[frozenset(j for j, x in enumerate(d) if x >= step)]
        below = step
    return total


def test_features_of_a_capacity_add_up_to_the_choquet_integral():
    rng = np.random.default_rng(12)
    columns = tuple("abcd")
    chosen = family("choquet", columns)
    for _ in range(200):
        theta = chosen.drawn(rng)
        capacity = {
            frozenset(columns.index(c) for c in name.split(", ")): value
            for name, value in zip(chosen.names, theta, strict=True)
        }
        d = rng.integers(0, 4, 4).astype(float)
        assert chosen.features(d) @ theta == pytest.approx(choquet_by_definition(d.tolist(), capacity))
        assert (chosen.rows @ theta >= -1e-12).all()
        assert chosen.unit @ theta == pytest.approx(1)


def test_mixtures_of_pairs_are_monotone_two_additive_integrals():
    rng = np.random.default_rng(13)
    columns = tuple("abcdefg")  # one more than a full capacity takes
    chosen = family("choquet", columns)
    assert len(chosen.names) == 49
    for _ in range(100):
        theta = chosen.drawn(rng)
        d = rng.random(7)
        pieces = dict(zip(chosen.names, theta, strict=True))
        value = sum(pieces[c] * d[j] for j, c in enumerate(columns))
        for j, a in enumerate(columns):
            for k in range(j + 1, 7):
                value += pieces[f"min({a}, {columns[k]})"] * min(d[j], d[k])
                value += pieces[f"max({a}, {columns[k]})"] * max(d[j], d[k])
        assert chosen.features(d) @ theta == pytest.approx(value)
        assert chosen.features(d + rng.random(7)) @ theta >= chosen.features(d) @ theta
