"""Strong intruders, right controls, and what cannot be told."""

import json

import numpy as np
import pyarrow as pa
import pytest

import shoal

ROLES = {"quasi": ["age", "sex", "town"], "sensitive": ["illness"]}
ILLNESSES = ["flu", "gout", "hiv", "mumps"]


def people(n=400, seed=0):
    random = np.random.default_rng(seed)
    return pa.table({
        "id": [str(i) for i in range(n)],
        "age": [str(v) for v in random.integers(20, 90, n)],
        "sex": random.choice(["f", "m"], n),
        "town": random.choice(list("abcdefgh"), n),
        "illness": random.choice(ILLNESSES, n, p=[0.5, 0.3, 0.15, 0.05]),
    })  # fmt: skip


def starred(table, share=0.2, seed=1):
    random = np.random.default_rng(seed)
    for name in ROLES["quasi"]:
        hide = random.random(table.num_rows) < share
        cells = ["*" if h else v for v, h in zip(table[name].to_pylist(), hide, strict=True)]
        table = table.set_column(table.column_names.index(name), name, pa.array(cells))
    return mixed(table, seed)


def mixed(table, seed=1):
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def shuffled(table, seed=1):
    random = np.random.default_rng(seed)
    columns = {name: random.permutation(table[name].to_pylist()) for name in table.column_names}
    return pa.table(columns)


def test_who_takes_the_most_specific_record_finds_people_behind_stars():
    original = people()
    found = shoal.attack(starred(original), original=original, id="id", **ROLES)
    risk = found.named("identity linking")
    reached = {name: one.successes / risk.attempts for name, one in risk.intruders.items()}
    assert reached.keys() == {"uniform", "most specific", "most likely"}
    assert reached["uniform"] < 0.2
    assert risk.share == max(reached.values()) > 0.45
    assert risk.intruder != "uniform"
    single = found.named("singling out")
    assert single.intruders["uniform"].successes < 0.05 * 400
    assert single.share > 0.35
    assert single.claims > single.successes  # some claims are wrong
    assert "fits better than any other" in single.sentence
    assert [answer.possible for answer in found.answers()] == [True, True, True]
    plain = json.loads(json.dumps(found.as_dict()))["attacks"][1]
    assert plain["intruder"] == risk.intruder
    assert plain["intruders"]["uniform"]["successes"] == pytest.approx(reached["uniform"] * 400)


def test_values_are_inferred_from_the_likely_records_first():
    original = people(1500)
    found = shoal.attack(starred(original), original=original, id="id", **ROLES)
    for name in ("homogeneity", "skewness", "inference"):
        risk = found.named(name)
        assert risk.share > 1.1 * risk.intruders["uniform"].successes / risk.attempts, name


@pytest.mark.parametrize("seed", range(4))
def test_a_table_with_every_column_shuffled_is_not_possible(seed):
    original = people(2000, seed)
    told = shoal.attack(shuffled(original, seed), original=original, id="id", **ROLES)
    assert not any(answer.possible for answer in told.answers())
    for name in ("homogeneity", "skewness", "inference"):
        assert told.named(name).above < 0.05, name


def test_without_an_id_nobody_can_tell_a_shuffled_table_from_its_original():
    original = people(600)
    told = {}
    for name, release in (("original", mixed(original)), ("shuffled", shuffled(original))):
        found = shoal.attack(release, original=original, **ROLES)
        told[name] = found.named("identity linking")
        if name == "shuffled":
            answer = found.answers()[1]
            assert answer.possible is None
            assert "it is unknown which record belongs to whom" in answer.missing
            assert told[name].range[0] == 0
            assert told[name].interval[0] == 0
        else:
            assert found.answers()[1].possible
    told["known"] = shoal.attack(shuffled(original), original=original, id="id", **ROLES).named("identity linking")
    assert told["known"].share < 0.02
    assert told["known"].range[0] == told["known"].range[1] == told["known"].share
    assert told["original"].range[0] > 0.5


def test_people_outside_who_happen_to_fit_are_claimed_wrongly_and_cancel_nothing():
    everybody = people(1000)
    inside, outside = everybody.slice(0, 500), everybody.slice(500)
    found = shoal.attack(mixed(inside), original=inside, control=outside, id="id", **ROLES)
    for name in ("singling out", "identity linking"):
        risk = found.named(name)
        assert risk.above > 0.95 * risk.share > 0.4, name
        assert risk.control.attempts == 500
        assert risk.control.claims > 50, name  # of those who are not there
        assert risk.control.successes < 2
    assert [answer.possible for answer in found.answers()] == [True, True, True]


def test_a_release_of_shoals_own_knows_whose_record_is_whose():
    original = people(300)
    policy = shoal.Policy.of({
        "columns": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
            "sex": {"role": "quasi"},
            "town": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 4}],
        "release": {"algorithm": "local"},
    })  # fmt: skip
    release = shoal.anonymize(original, policy)
    found = shoal.attack(release)
    assert found.owners_known
    risk = found.named("identity linking")
    assert max(one.successes for one in risk.intruders.values()) / risk.attempts <= 1 / 4
    assert risk.intruders["uniform"].successes < risk.successes
    # Who has only the file has bounds, and the truth is within.
    least, most = shoal.attack(release.table, original=original, policy=policy).named("identity linking").range
    assert least <= risk.share <= most


def test_cells_that_were_not_understood_are_no_sign_of_safety():
    original = people(500)
    codes = {value: f"code {i}!" for i, value in enumerate(sorted(set(original["age"].to_pylist())))}
    release = original.set_column(1, "age", pa.array([codes[v] for v in original["age"].to_pylist()]))
    found = shoal.attack(mixed(release), original=original, id="id", **ROLES)
    assert found.unread["age"] == 1
    answer = found.answers()[1]
    assert answer.possible is None or answer.possible
    coarse = release.set_column(2, "sex", pa.array(["*"] * 500)).set_column(3, "town", pa.array(["*"] * 500))
    link = shoal.attack(mixed(coarse), original=original, id="id", **ROLES).answers()[1]
    assert link.possible is None
    assert "100 % of the cells of 'age' could not be interpreted" in link.sentence


def test_a_limit_is_not_kept_by_cells_that_were_not_understood():
    original = people(200)
    policy = shoal.Policy.of({
        "columns": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi"},
            "sex": {"role": "quasi"},
            "town": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        },
        "require": [{"model": "linkage-risk", "max": 0.3}, {"model": "singling-out-risk", "max": 0.0}],
    })  # fmt: skip
    stars = pa.array(["*"] * 200)
    release = original.set_column(2, "sex", stars).set_column(3, "town", stars)
    release = release.set_column(1, "age", pa.array([f"code {i % 20}!" for i in range(200)]))
    linkage, single = policy.limits
    # Classes of ten, whatever they stand for; but their order may say more.
    found = shoal.attack(mixed(release), original=original, policy=policy)
    assert single.judge(found).outcome == "holds"
    assert found.untold("singling out", 0.0) == ""
    assert linkage.judge(found).outcome == "unknown"
    alone = release.set_column(1, "age", pa.array([f"code {i}!" for i in range(200)]))
    found = shoal.attack(mixed(alone), original=original, policy=policy)
    verdicts = [limit.judge(found) for limit in policy.limits]
    assert [verdict.outcome for verdict in verdicts] == ["unknown", "unknown"]
    assert "100 % of the cells of 'age' could not be interpreted" in verdicts[0].missing


def test_a_sample_does_not_prove_a_limit():
    original = people(3000)
    policy = shoal.Policy.of({
        "columns": {name: {"role": "quasi"} for name in ROLES["quasi"]}
        | {"id": {"role": "plain"}, "illness": {"role": "sensitive"}},
        "require": [{"model": "linkage-risk", "max": 0.5}],
    })  # fmt: skip
    share = shoal.attack(original, policy=policy, sample=None).named("identity linking").share
    (limit,) = policy.model_copy(update={"require": [policy.limits[0].model_copy(update={"max": share})]}).limits
    assert limit.judge(shoal.attack(original, policy=policy, sample=None)).outcome == "holds"
    judged = {limit.judge(shoal.attack(original, policy=policy, sample=60, seed=s)).outcome for s in range(6)}
    assert "holds" not in judged
