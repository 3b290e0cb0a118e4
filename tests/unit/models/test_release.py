"""Limits on the release as a whole, and the models that count people or sets of columns."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import shoal
from definitions import exact
from shoal.errors import PolicyError
from shoal.models.release import AverageRisk, PopulationUniqueness, ReleaseModel, SampleUniqueness
from shoal.models.size import DeltaPresence, KAnonymity, KMap, MaximumRisk
from shoal.tables.frequency import FrequencyTable, Histogram


def table(counts, *, people=None, persons=None, absent=0):
    """Classes 0, 1, 2, … of one column, with these counts."""
    entities = None
    if persons is not None:
        starts = np.concatenate([[0], np.cumsum([len(set(of)) for of in persons])])
        values = np.array([who for of in persons for who in sorted(set(of))], np.int32)
        entities = Histogram(starts, values, np.ones(len(values), np.int64), int(values.max()) + 1)
    return FrequencyTable(
        ("a",),
        np.arange(len(counts), dtype=np.int32)[:, None],
        np.array(counts, np.int64),
        entities=entities,
        population=None if people is None else np.array(people, np.int64),
        absent=absent,
    )


def none_failing(of: FrequencyTable):
    return np.zeros(of.n_classes, np.bool_)


def test_the_average_risk_is_classes_per_record():
    four = table([1, 2, 3, 4])
    assert AverageRisk(max=1).value(four) == 0.4
    assert AverageRisk(max=0.4).passes(four).all()
    assert not AverageRisk(max=0.39).passes(four).any()


def test_with_persons_the_average_risk_is_the_mean_over_records_of_one_in_the_persons():
    # Three records of one person and two of two: (3 · 1 + 2 · ½) / 5.
    of = table([3, 2], persons=[[0, 0, 0], [1, 2]])
    assert AverageRisk(max=1).value(of) == pytest.approx(4 / 5)
    assert AverageRisk(max=0.8).passes(of).all()
    assert not AverageRisk(max=0.79).passes(of).any()


def test_sample_uniqueness_counts_the_records_that_are_alone():
    of = table([1, 1, 3])
    assert SampleUniqueness(max=1).value(of) == 0.4
    assert SampleUniqueness(max=0.4).passes(of).all()
    assert not SampleUniqueness(max=0.3).passes(of).any()


def test_a_person_alone_with_many_records_is_unique_with_each_of_them():
    of = table([3, 2], persons=[[0, 0, 0], [1, 2]])
    assert SampleUniqueness(max=1).value(of) == 0.6


def test_population_uniqueness_counts_records_whose_people_are_one_or_against_reason_none():
    of = table([1, 2, 5], people=[1, 0, 9])
    model = PopulationUniqueness(max=0.375, population="people.csv")
    assert model.value(of) == 3 / 8
    assert model.passes(of).all()
    assert not PopulationUniqueness(max=0.37, population="people.csv").passes(of).any()


def test_a_limit_without_a_population_says_so():
    with pytest.raises(TypeError, match="no population"):
        PopulationUniqueness(max=0.5, population="people.csv").passes(table([1]))


@pytest.mark.parametrize("model", [AverageRisk(max=0.1), SampleUniqueness(max=0.1)])
def test_nobody_is_at_risk_in_an_empty_release(model):
    nothing = table([])
    assert model.value(nothing) == 0
    assert model.passes(nothing).tolist() == []


def test_the_smallest_classes_go_first_and_no_more_than_it_takes():
    # 4 classes of 10 records are 0.4; without the single one 3 of 9, without the two smallest 2 of 7.
    of = table([4, 1, 3, 2])
    assert AverageRisk(max=0.4).enforced(of, none_failing(of))[0].tolist() == [False] * 4
    assert AverageRisk(max=0.34).enforced(of, none_failing(of))[0].tolist() == [False, True, False, False]
    assert AverageRisk(max=0.3).enforced(of, none_failing(of))[0].tolist() == [False, True, False, True]
    assert AverageRisk(max=0.01).enforced(of, none_failing(of))[0].tolist() == [True] * 4


def test_among_equal_classes_the_first_by_its_codes_goes_whatever_the_order_of_the_rows():
    model = SampleUniqueness(max=0.34)
    for order in itertools.permutations(range(4)):
        of = table([1, 1, 2, 1]).selected(np.array(order))
        gone = of.codes[model.enforced(of, none_failing(of))[0], 0]
        assert sorted(gone.tolist()) == [0, 1]


def test_classes_that_fail_already_stay_suppressed_and_lend_no_allowance():
    of = table([1, 1, 8])
    failing = np.array([False, False, True])
    out, least = SampleUniqueness(max=0.5).enforced(of, failing)
    assert out.tolist() == [True, True, True]
    assert 1 <= least <= 2


def least_removed(model: ReleaseModel, counts, risks) -> int:
    """The fewest records that must go, over all sets of classes."""
    limit = exact(model.max)
    best = sum(counts)
    for kept in itertools.product((False, True), repeat=len(counts)):
        chosen = [i for i, stays in enumerate(kept) if stays]
        n = sum(counts[i] for i in chosen)
        if sum((risks[i] for i in chosen), Fraction(0)) <= limit * n:
            best = min(best, sum(counts) - n)
    return best


@pytest.mark.parametrize("kind", [AverageRisk, SampleUniqueness, PopulationUniqueness])
def test_no_choice_of_classes_suppresses_fewer_than_the_bound(kind):
    rng = random.Random(kind.__name__)
    n_bounds = 0
    for _ in range(200):
        counts = [rng.choice((1, 1, 2, 3, 5)) for _ in range(rng.randint(1, 7))]
        people = [rng.choice((0, 1, 1, n + 2)) for n in counts]
        given = {"population": "people.csv"} if kind is PopulationUniqueness else {}
        model = kind(max=rng.choice((0, 0.1, 0.25, 0.3, 0.5, 0.75)), **given)
        of = table(counts, people=people)
        out, bound = model.enforced(of, none_failing(of))
        risks = {
            AverageRisk: [Fraction(1)] * len(counts),
            SampleUniqueness: [Fraction(n * (n == 1)) for n in counts],
            PopulationUniqueness: [Fraction(n * (p <= 1)) for n, p in zip(counts, people, strict=True)],
        }[kind]
        least = least_removed(model, counts, risks)
        assert 0 <= bound <= least <= of.counts[out].sum()
        left = [i for i, gone in enumerate(out) if not gone]
        assert sum((risks[i] for i in left), Fraction(0)) <= exact(model.max) * sum(counts[i] for i in left)
        n_bounds += bound > 0
    assert n_bounds > 20


def test_where_nulls_match_anything_a_record_is_counted_once():
    # Ten records (1, x), one (1, null) that matches them, and one alone: two of twelve guesses are right on average.
    rows = pa.table({"a": ["1"] * 11 + ["2"], "b": ["x"] * 10 + [None, "y"]})

    def verdict(**asked):
        fields = {"columns": {"a": {"role": "quasi"}, "b": {"role": "quasi"}}, "require": [asked]}
        (found,) = shoal.check(rows, shoal.Policy.of({**fields, "release": {"nulls": "wildcard"}})).verdicts
        return found

    assert verdict(model="average-risk", max=0.16).worst == pytest.approx(1 / 6)
    assert not verdict(model="average-risk", max=0.16).holds
    assert verdict(model="average-risk", max=0.17).holds
    assert verdict(model="sample-uniqueness", max=0.08).worst == pytest.approx(1 / 12)
    assert not verdict(model="sample-uniqueness", max=0.08).holds
    assert verdict(model="sample-uniqueness", max=0.084).holds


def policy(*asked, **release):
    return shoal.Policy.of(
        {"columns": {"a": {"role": "quasi"}, "b": {"role": "quasi"}}, "require": list(asked), "release": release}
    )


def test_a_release_with_stars_is_judged_as_a_whole_and_not_by_its_stars():
    # One record of 91 stands alone: as a star it still does, and 3 classes of 91 records are within the limit.
    rows = pa.table({"a": ["1"] * 50 + ["2"] * 40 + ["3"], "b": ["x"] * 91})
    asked = [{"model": "average-risk", "max": 0.04}, {"model": "maximum-risk", "max": 1.0}]
    assert shoal.anonymize(rows, policy(*asked, max_suppression=0.1, suppressed="keep")).levels == {"a": 0, "b": 0}
    # Two records beyond the limit on those that are unique: together they are a class of two.
    rows = pa.table({"a": [*["1"] * 20, "2", "3"], "b": ["x"] * 22})
    asked = [{"model": "sample-uniqueness", "max": 0.01}, {"model": "average-risk", "max": 0.1}]
    release = shoal.anonymize(rows, policy(*asked, max_suppression=0.1, suppressed="keep"))
    assert release.levels == {"a": 0, "b": 0}
    assert release.suppressed == 2
    # The class of stars has a risk of ½ of its own; the release has 2 classes in 22 records.
    assert release.measured["risk_mean"] == pytest.approx(2 / 22)
    assert shoal.check(release.table, release.policy).holds


def test_a_star_that_is_alone_is_unique_in_the_release():
    rows = pa.table({"a": ["1"] * 20 + ["2"], "b": ["x"] * 21})
    asked = {"model": "sample-uniqueness", "max": 0.0}
    kept = shoal.anonymize(rows, policy(asked, max_suppression=0.1, suppressed="keep"))
    assert (kept.levels, kept.suppressed) == ({"a": 1, "b": 0}, 0)
    dropped = shoal.anonymize(rows, policy(asked, max_suppression=0.1))
    assert (dropped.levels, dropped.suppressed) == ({"a": 0, "b": 0}, 1)


@pytest.mark.parametrize(
    ("asked", "figure"),
    [
        ({"model": "average-risk", "max": 0.3}, "risk_mean"),
        ({"model": "sample-uniqueness", "max": 0.1}, "sample_uniqueness"),
    ],
)
def test_what_is_released_is_within_the_limit_and_a_check_says_the_same(asked, figure):
    rows = pa.table({"a": ["1", "1", "1", "2", "3", "3", "4", "5"], "b": ["x", "x", "y", "x", "y", "y", "x", "x"]})
    for share in (0, 0.3, 1):
        release = shoal.anonymize(rows, policy(asked, max_suppression=share))
        (found,) = release.verdicts.verdicts
        assert found.figure == figure
        assert found.worst <= asked["max"]
        assert shoal.check(release.table, release.policy).verdicts == release.verdicts.verdicts
    assert not shoal.check(rows, policy(asked)).holds


# --- people, risks and sets of columns -----------------------------------------------------------------------------


def test_k_map_asks_for_people_and_not_for_records():
    of = table([1, 9, 2], people=[5, 4, 0])
    model = KMap(k=5, population="people.csv")
    assert model.passes(of).tolist() == [True, False, False]
    assert model.scores(of).tolist() == [5, 4, 0]


def test_delta_presence_is_between_its_bounds_both_included():
    of = table([1, 2, 3, 1], people=[10, 4, 4, 0])
    model = DeltaPresence(low=0.1, high=0.5, population="people.csv")
    assert model.passes(of).tolist() == [True, True, False, False]
    assert model.scores(of).tolist() == [0.1, 0.5, 0.75, np.inf]


def test_people_of_whom_nobody_is_there_are_too_rare_for_any_lower_bound_but_none():
    of = table([1, 2], people=[2, 4], absent=1)
    assert DeltaPresence(high=0.5, population="people.csv").passes(of).all()
    assert not DeltaPresence(low=0.01, high=0.5, population="people.csv").passes(of).any()
    assert DeltaPresence(high=0.5, population="people.csv").possible(of, 3)
    assert not DeltaPresence(low=0.01, high=0.5, population="people.csv").possible(table([1], people=[2]), 1)


@pytest.mark.parametrize(("limit", "least"), [(0.09, 12), (1 / 11, 11), (0.1, 10), (0.05, 20), (1 / 3, 3), (1.0, 1)])
def test_a_maximum_risk_asks_for_the_least_class_whose_share_is_within(limit, least):
    of = table(range(1, 25))
    model = MaximumRisk(max=limit)
    assert np.flatnonzero(model.passes(of))[0] + 1 == least
    assert model.passes(of).tolist() == [n >= least for n in range(1, 25)]
    assert model.scores(of)[3] == 0.25


def test_k_over_a_set_of_columns_counts_all_that_share_them():
    codes = np.array([[0, 0], [0, 1], [1, 0]], np.int32)
    of = FrequencyTable(("a", "b"), codes, np.array([1, 2, 2]))
    assert KAnonymity(k=3, columns=("a",)).passes(of).tolist() == [True, True, False]
    assert KAnonymity(k=3, columns=("b",)).passes(of).tolist() == [True, False, True]
    assert KAnonymity(k=3, columns=("b", "a")).passes(of).tolist() == [False, False, False]


def test_k_over_a_set_of_columns_counts_a_person_once():
    codes = np.array([[0, 0], [0, 1], [1, 0]], np.int32)
    persons = Histogram(np.array([0, 1, 2, 4]), np.array([0, 0, 1, 2], np.int32), np.ones(4, np.int64), 3)
    of = FrequencyTable(("a", "b"), codes, np.array([1, 1, 2]), entities=persons)
    assert KAnonymity(k=2, columns=("a",)).scores(of).tolist() == [1, 1, 2]
    assert KAnonymity(k=2, columns=("b",)).scores(of).tolist() == [3, 1, 3]


def test_several_sets_protect_each_of_them_and_not_their_union():
    rows = pa.table({"a": ["1", "1", "2", "2"], "b": ["x", "y", "x", "y"]})
    asked = [{"model": "k-anonymity", "k": 2, "columns": ["a"]}, {"model": "k-anonymity", "k": 2, "columns": ["b"]}]
    release = shoal.anonymize(rows, policy(*asked))
    assert release.levels == {"a": 0, "b": 0}
    assert release.measured["k"] == 1
    assert [verdict.worst for verdict in release.verdicts.verdicts] == [2, 2]


def test_who_backed_others_in_a_set_and_goes_takes_them_along():
    # k = 2 over b suppresses (2, y); then (2, x) is alone in a = 2, and goes too.
    rows = pa.table({"a": ["1", "1", "2", "2"], "b": ["x", "x", "x", "y"]})
    asked = [{"model": "k-anonymity", "k": 2, "columns": ["a"]}, {"model": "k-anonymity", "k": 2, "columns": ["b"]}]
    release = shoal.anonymize(rows, policy(*asked, max_suppression=0.5, objective="height"))
    assert release.levels == {"a": 0, "b": 0}
    assert release.suppressed == 2


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"model": "average-risk", "max": 1.1}, "require.0.max: Input should be less than or equal to 1"),
        ({"model": "sample-uniqueness"}, "require.0.max: is missing"),
        ({"model": "maximum-risk", "max": 0}, "require.0.max: Input should be greater than 0"),
        ({"model": "k-map", "k": 2}, "require.0.population: is missing"),
        ({"model": "delta-presence", "low": 0.6, "high": 0.5, "population": "p.csv"}, "low must be at most high"),
        ({"model": "k-anonymity", "k": 2, "columns": []}, "require.0.columns"),
        ({"model": "k-anonymity", "k": 2, "columns": ["a", "c"]}, "'c' is not"),
        ({"model": "k-anonymity", "k": 2, "columns": ["a", "a"]}, "one is named twice"),
    ],
)
def test_a_requirement_that_makes_no_sense_is_refused_with_its_field(asked, says):
    with pytest.raises(PolicyError) as error:
        policy(asked)
    assert says in str(error.value)
