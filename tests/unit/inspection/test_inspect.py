"""If these fail, a column gets a role that publishes what identifies or harms people."""

import json
import tomllib
from collections import Counter
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.demo.hospital import hospital
from shoal.errors import DataError, PolicyError
from shoal.hierarchies.builders import build
from shoal.inspection.inspect import inspect
from shoal.inspection.inspection import Inspection
from shoal.inspection.uniqueness import Separation, Tuples, separations
from shoal.notation import codec

N = 200
RNG = np.random.Generator(np.random.PCG64(7))


def table(**columns: object) -> pa.Table:
    return pa.table(columns)


def roles(found: Inspection) -> dict[str, str]:
    return {column.name: column.role for column in found.columns}


def kinds(found: Inspection) -> dict[str, str]:
    return {column.name: column.kind for column in found.columns}


def role_of(name: str, values: list[object]) -> str:
    # Beside a column that is always quasi, so that the other need not stand in for it, and that tells nothing of it.
    sexes = np.random.Generator(np.random.PCG64(3)).choice(["f", "m"], len(values)).tolist()
    return roles(inspect(pa.table({name: values, "sex": sexes})))[name]


def reason_of(name: str, values: list[object]) -> str:
    return next(c.reason for c in inspect(pa.table({name: values, "sex": ["f", "m"] * (N // 2)})).columns)


def built(found: Inspection, data: pa.Table) -> None:
    """Build every hierarchy of the policy on the data."""
    policy = found.policy
    assert tuple(policy.columns) == tuple(data.column_names)
    for name in policy.quasi:
        coded = codec.encode_texts(name, data[name])
        spec = policy.columns[name].hierarchy
        hierarchy = build(name, spec, coded.texts, nulls=False, uncovered="error", folder=Path())
        assert hierarchy.missing(coded.texts) == 0


def test_a_number_that_starts_again_in_every_hospital_still_tells_persons_apart():
    persons = [(center, number) for center in "AB" for number in range(1, 21) for _ in range(4)]
    sexes = {key: "fm"[int(RNG.integers(2))] for key in persons}
    treated = {key: "PT"[int(RNG.integers(2))] for key in persons}
    data = table(
        center=[center for center, _ in persons],
        id=[number for _, number in persons],
        sex=[sexes[key] for key in persons],
        treat=[treated[key] for key in persons],
        outcome=RNG.integers(0, 2, len(persons)).tolist(),
    )
    assert inspect(data).policy.release.entity == "id"
    mixed = data.set_column(2, "sex", pa.array(RNG.permutation(data["sex"].to_pylist()).tolist()))
    assert inspect(mixed).policy.release.entity is None  # nobody's sex changes from visit to visit


def test_a_column_that_repeats_a_quasi_identifier_is_one_itself():
    # Released as it is, the log of a town's size would undo whatever is done to the size.
    sizes = [100 * (row % 25 + 1) for row in range(N)]
    logs = [round(float(np.log(size)), 6) for size in sizes]
    found = inspect(table(population=sizes, lnx=logs, sex=["f", "m"] * (N // 2)))
    assert roles(found)["lnx"] == "quasi"
    assert "population" in next(column.reason for column in found.columns if column.name == "lnx")
    told = inspect(table(population=sizes, lnx=logs, sex=["f", "m"] * (N // 2)), sensitive=["lnx"])
    assert roles(told)["lnx"] == "sensitive"  # what the user says stands


def test_a_column_that_tells_a_quasi_identifier_is_one_itself():
    jobs = ["no" if row % 3 else "yes" for row in range(N)]
    wages = [0 if job == "no" else 900 + row % 20 for row, job in enumerate(jobs)]
    sexes = RNG.choice(["f", "m"], N).tolist()
    assert roles(inspect(table(employed=jobs, wage=wages, sex=sexes)))["wage"] == "quasi"
    wages = [row % 20 for row in range(N)]
    assert roles(inspect(table(employed=jobs, wage=wages, sex=sexes)))["wage"] == "sensitive"


def test_a_column_that_a_quasi_identifier_tells_is_one_itself():
    hospitals = RNG.integers(0, 20, N)
    kinds_of = [["city", "rural", "university"][h % 3] for h in hospitals]
    data = table(hospital=[f"H{h}" for h in hospitals], kind=kinds_of, sex=RNG.choice(["f", "m"], N).tolist())
    reasons = {column.name: column.reason for column in inspect(data).columns}
    assert reasons["kind"] == "told by 'hospital'" or "does not say" in reasons["kind"]
    assert roles(inspect(data))["kind"] == "quasi"


def test_near_unique_and_near_empty_columns_tell_nothing():
    languages = ["de" if x < 0.8 else "fr" for x in RNG.random(N)]
    births = [str(date(1950, 1, 1) + timedelta(int(x))) for x in RNG.integers(0, 20_000, N)]
    # Each person has two records, so that a day of birth tells everything about a person, as a name would.
    data = table(
        person_no=[i // 2 for i in range(2 * N)],
        dob=[b for b in births for _ in range(2)],
        rating=[b for b in RNG.integers(0, 3, N).tolist() for _ in range(2)],
        lang=[x for x in languages for _ in range(2)],
    )
    found = inspect(data, known=["lang"])
    assert roles(found)["rating"] == "sensitive"
    few = table(lang=languages, score=[5 if x == "fr" and i < 60 else None for i, x in enumerate(languages)])
    assert roles(inspect(few, known=["lang"]))["score"] == "sensitive"


def test_the_hospital():
    found = inspect(hospital())
    assert roles(found) == {
        "name": "identifier",
        "birth": "quasi",
        "zip": "quasi",
        "sex": "quasi",
        "job": "quasi",
        "marital": "quasi",
        "disease": "sensitive",
        "cost": "sensitive",
    }
    assert kinds(found) == {
        "name": "text",
        "birth": "date",
        "zip": "code",
        "sex": "category",
        "job": "category",
        "marital": "category",
        "disease": "category",
        "cost": "number",
    }
    assert found.strongest(1)[0].columns == ("birth",)
    assert set(found.strongest(2)[0].columns) == {"birth", "zip"}
    assert found.strongest(2)[0].unique_ratio > 0.95
    built(found, hospital())


DIGITS = RNG.integers(0, 10, (N, 12)).astype(str)


def digits(start: int, stop: int) -> list[str]:
    return ["".join(row[start:stop]) for row in DIGITS]


@pytest.mark.parametrize(
    "values",
    [
        [f"u{i}@example.org" for i in range(N)],
        [f"https://example.org/{i}" for i in range(N)],
        [f"10.0.{i // 100}.{i % 100}" for i in range(N)],
        [f"2001:db8::{i:x}:0:1" for i in range(N)],
        [f"+49 30 {d}" for d in digits(0, 7)],
        [f"(030) {d}" for d in digits(0, 7)],
        [f"555-{a}-{b}" for a, b in zip(digits(0, 3), digits(3, 7), strict=True)],
        [f"{a}-{b}-{c}" for a, b, c in zip(digits(0, 3), digits(3, 5), digits(5, 9), strict=True)],
        [f"DE{a}{b}00000000" for a, b in zip(digits(0, 2), digits(2, 12), strict=True)],
        [f"0000{i:04x}-0000-4000-8000-000000000000" for i in range(N)],
        [f"{a} 0000 0000 {b}".replace(" ", "-") for a, b in zip(digits(0, 4), digits(4, 8), strict=True)],
        [f"RSSMRA{a}A01H{b}Z" for a, b in zip(digits(0, 2), digits(2, 5), strict=True)],
        [f"u{i}@example.org" if i % 2 else f"+49 30 {d}" for i, d in enumerate(digits(0, 7))],
    ],
)
def test_values_that_lead_to_a_person_are_identifiers_whatever_the_name(values):
    assert role_of("x", values) == "identifier"
    assert role_of("x", [*values[:-10], *[None] * 10]) == "identifier"


@pytest.mark.parametrize("name", ["name", "Patient Name", "lastName", "Nachname", "prénom", "nombre"])
def test_a_name_is_known_by_its_column_and_its_look(name):
    people = ["Ana Díaz", "O'Brien, Seán", "Nguyễn Minh", "Jean-Luc M. Roy"] * 50
    assert role_of(name, people) == "identifier"
    assert role_of(name, [f"T-{i % 20:03}" for i in range(N)]) in ("quasi", "identifier")


def test_a_name_of_a_place_is_no_name_of_a_person():
    assert role_of("city_name", ["Rome", "Paris", "Oslo", "Bern"] * 50) == "quasi"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", [str, int, float])
def test_row_numbers_are_identifiers(first, kind):
    assert role_of("x", [kind(i + first) if kind is not float else float(i + first) for i in range(6)]) == "identifier"


def test_numbers_out_of_order_are_row_numbers_only_in_larger_tables():
    assert role_of("x", [2, 1, 3, 4, 6, 5]) == "quasi"
    assert role_of("x", RNG.permutation(N).tolist()) == "identifier"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_id", [i % 40 for i in range(N)]),
        ("record no", [7 * i for i in range(N)]),
        ("x", [f"K{i * 37:06}" for i in range(N)]),
        ("x", [f"Something else happened at {i}" for i in range(N)]),
        ("remarks", [f"This patient told us at some length about the {i % 30}th visit" for i in range(N)]),
        ("street", [f"Main Road {i % 50}" for i in range(N)]),
        ("mobile", digits(0, 9)),
        ("diagnosis notes", [f"saw {i} on the scan" for i in range(N)]),
    ],
)
def test_keys_addresses_and_free_texts_are_identifiers(name, values):
    assert role_of(name, values) == "identifier"


@pytest.mark.parametrize(
    "name",
    [
        "disease",
        "Diagnose",
        "ICD",
        "income",
        "household income",
        "Gehalt",
        "stipendio",
        "religión",
        "cost",
        "hiv_status",
    ],
)
def test_private_matters_are_sensitive(name):
    assert role_of(name, ["a", "b", "c", "d"] * 50) == "sensitive"
    assert role_of(name, [f"{x:.2f}" for x in RNG.random(N) * 1e5]) == "sensitive"


def test_when_something_private_happened_is_known_to_others():
    dates = [str(date(2020, 1, 1) + timedelta(i)) for i in range(N)]
    assert role_of("diagnosed", dates) == "quasi"
    assert role_of("age at diagnosis", [i % 80 for i in range(N)]) == "quasi"


@pytest.mark.parametrize("name", ["age", "Geschlecht", "PLZ", "code_postal", "marital-status", "year of birth"])
def test_what_others_may_know_is_quasi(name):
    assert role_of(name, [str(i % 30 + 10) for i in range(N)]) == "quasi"


def test_what_people_see_is_quasi_and_what_only_a_study_knows_is_not():
    assert role_of("weight", [50 + i * 0.13 for i in range(N)]) == "quasi"
    assert role_of("zip", [f"{i * 37:05}" for i in range(N)]) == "quasi"
    assert role_of("bmi", [1.5 + i * 0.13 for i in range(N)]) == "sensitive"
    assert role_of("x", [1.5 + i * 0.13 for i in range(N)]) == "quasi"  # nobody knows who knows it


def test_nothing_that_varies_is_proposed_as_plain():
    """Sampling weights and numbers of visits would split the classes: whoever needs them as they are says so."""
    weights = [0.2 + i % 50 * 0.013 for i in range(N)]
    assert role_of("weight", weights) == "quasi"
    assert role_of("wght", [1000 + i * 7.31 for i in range(N)]) == "quasi"
    assert role_of("visit", [i % 5 for i in range(N)]) == "quasi"
    assert "set the role to plain" in reason_of("weight", weights)
    people = pa.table({"weight": weights, "age": [20 + i % 50 for i in range(N)]})
    assert inspect(people, plain=["weight"]).having("plain") == ("weight",)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("agew", "quasi"), ("educwm", "quasi"), ("child618", "quasi"), ("female", "quasi"), ("nwhite", "quasi"),
        ("smsa", "quasi"), ("Wohnort", "quasi"), ("residence", "quasi"), ("estado civil", "quasi"), ("metier", "quasi"),
        ("hhninc", "sensitive"), ("lwage", "sensitive"), ("docvis", "sensitive"), ("bili", "sensitive"),
        ("privins", "sensitive"), ("vote", "sensitive"), ("abdpain", "sensitive"), ("Krankheit", "sensitive"),
        ("salario", "sensitive"), ("mathscr", "sensitive"), ("condom", "sensitive"), ("hypothek", "sensitive"),
    ],
)  # fmt: skip
def test_abbreviations_of_public_tables_and_other_languages(name, role):
    assert role_of(name, [str(i % 7) for i in range(N)]) == role


@pytest.mark.parametrize(
    ("name", "many", "few"),
    [("death", "quasi", "sensitive"), ("grade", "quasi", "sensitive"), ("skin", "sensitive", "quasi")],
)
def test_some_names_mean_something_else_where_there_are_many_numbers(name, many, few):
    assert role_of(name, [str(i % 19) for i in range(N)]) == many
    assert role_of(name, [str(i % 4) for i in range(N)]) == few


def test_courses_are_schooling_and_scores_are_not():
    assert role_of("mathcourse", [str(i % 4) for i in range(N)]) == "quasi"
    assert role_of("mathscore", [str(i % 4) for i in range(N)]) == "sensitive"


def test_a_numbered_item_is_an_answer_and_not_about_the_study():
    assert "about the study" in reason_of("item", [str(i % 5) for i in range(N)])
    assert "about the study" not in reason_of("item_7", [str(i % 5) for i in range(N)])
    assert role_of("item_7", [str(i % 5) for i in range(N)]) == "quasi"


def test_the_ends_of_an_observation_are_known_by_the_event_beside_them():
    def at(shift: int) -> list[int]:
        return [(i * 7 + shift) % 90 for i in range(N)]

    data = {"age": [i % 40 for i in range(N)], "start": at(0), "stop": at(30)}
    assert roles(inspect(table(**data)))["stop"] == "quasi"
    beside = roles(inspect(table(**data, event=[i % 2 for i in range(N)])))
    assert beside["start"] == beside["stop"] == "sensitive"


@pytest.mark.parametrize(("n", "n_quasi"), [(3, 3), (8, 1)])
def test_where_all_of_many_columns_are_private_one_stands_for_what_others_know(n, n_quasi):
    data = table(**{f"{stem} score": RNG.integers(0, 40, N).tolist() for stem in "abcdefgh"[:n]})
    assert sum(role == "quasi" for role in roles(inspect(data)).values()) == n_quasi


def test_an_unsure_guess_says_so_and_what_hangs_on_it():
    sexes, draws = RNG.choice(["f", "m"], N).tolist(), RNG.integers(0, 30, N).tolist()
    data = table(sex=sexes, age=[i % 40 for i in range(N)], x7=draws)
    found = inspect(data)
    sure = {column.name: column.sure for column in found.columns}
    assert sure == {"sex": "sure", "age": "likely", "x7": "unsure"}
    (decision,) = found.decisions
    with_it = Counter(zip(*(data[name].to_pylist() for name in ("sex", "age", "x7")), strict=True))
    without = Counter(zip(*(data[name].to_pylist() for name in ("sex", "age")), strict=True))
    assert decision.known == sum(n == 1 for n in with_it.values()) > 0
    assert decision.unknown == sum(n == 1 for n in without.values())
    assert "Decide these first" in found.toml()


def test_what_is_told_is_not_guessed():
    data = table(sex=["f", "m"] * (N // 2), x7=[i % 30 for i in range(N)], disease=["a", "b"] * (N // 2))
    found = inspect(data, known=["x7"], sensitive=["sex"], keep=["x7"])
    assert roles(found) == {"sex": "sensitive", "x7": "quasi", "disease": "sensitive"}
    assert found.policy.columns["x7"].weight > 1
    for wrong in ({"known": ["nobody"]}, {"keep": ["nobody"]}, {"known": ["x7"], "sensitive": ["x7"]}, {"known": "x7"}):
        with pytest.raises(PolicyError):
            inspect(data, **wrong)
    with pytest.raises(PolicyError, match="purpose"):
        inspect(data, purpose="fun")


def test_only_empty_and_constant_columns_are_plain():
    assert role_of("x", [None] * 10) == "plain"
    assert role_of("x", ["same"] * 10) == "plain"
    assert role_of("x", ["same"] * 9 + [None]) == "quasi"
    assert role_of("x", ["same"] * 4) == "quasi"  # too few to be everybody
    assert role_of("disease", ["same"] * 10) == "plain"
    assert role_of("email", ["me@example.org"] * 10) == "identifier"


def test_types_other_than_text():
    days = [date(1950, 1, 1) + timedelta(97 * i) for i in range(N)]
    data = table(
        born=days,
        seen=pa.array(days).cast(pa.timestamp("ns")),
        flag=[i % 3 == 0 for i in range(N)],
        score=pa.array([i % 50 + 0.0 for i in range(N - 1)] + [float("nan")]),
        length=pa.array([i % 40 for i in range(N)], pa.int16()),
        group=pa.array([f"g{i % 5}" for i in range(N)]).dictionary_encode(),
    )
    found = inspect(data)
    assert kinds(found) == {
        "born": "date",
        "seen": "date",
        "flag": "category",
        "score": "number",
        "length": "number",
        "group": "category",
    }
    assert next(column for column in found.columns if column.name == "score").nulls == 1
    built(found, data)


# What single columns and small sets tell apart.


def counted(rows: list[tuple[object, ...]], columns: tuple[str, ...]) -> Separation:
    counts = Counter(rows).values()
    unique = sum(count == 1 for count in counts)
    alike = sum(a == b for a, b in combinations(rows, 2))
    return Separation(columns, len(rows), len(counts), unique, alike)


@given(st.lists(st.tuples(*[st.integers(0, limit) for limit in (1, 3, 9, 10**6)]), max_size=30))
def test_separations_are_those_of_counting_pairs_one_by_one(rows):
    names = "abcd"
    codes = {name: np.array([row[j] for row in rows], dtype=np.int64) for j, name in enumerate(names)}
    found = separations(codes, len(rows))
    assert len(found) == 4 + 6 + 4
    for separation in found:
        places = [names.index(name) for name in separation.columns]
        assert separation == counted([tuple(row[j] for j in places) for row in rows], separation.columns)


def test_sparse_codes_are_counted_without_overflow():
    far = np.array([0, 2**40, 2**40, 2**61], dtype=np.int64)
    found = {frozenset(s.columns): s for s in separations({"a": far, "b": far.copy(), "c": far.copy()}, 4)}
    assert {(s.distinct, s.unique, s.alike) for s in found.values()} == {(3, 2, 1)}


@pytest.mark.parametrize("spread", [1, 10**6])  # codes that lie together are counted in place, others by sorting
def test_a_row_may_stand_for_many(spread: int) -> None:
    draw = np.random.default_rng(3)
    codes = {name: draw.integers(0, 5, 40) * spread for name in "abc"}
    weights = draw.integers(1, 4, 40)
    weighted, plain = Tuples(codes, weights), Tuples({n: np.repeat(code, weights) for n, code in codes.items()}, None)
    for columns in (("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")):
        assert weighted(columns) == plain(columns)
        assert weighted(columns).records == weights.sum()


def test_ratios_are_exact_where_pairs_are_many():
    n = 10**9
    pairs = n * (n - 1) // 2
    assert Separation(("a",), n, 1, 0, pairs).separation_ratio == 0
    assert Separation(("a",), n, 2, 0, pairs // 2).separation_ratio == 0.5
    assert Separation(("a",), n, n, n, 0).separation_ratio == 1


def test_one_record_has_no_pair_to_tell_apart():
    assert Separation(("a",), 1, 1, 1, 0).separation_ratio == 0
    assert Separation(("a",), 0, 0, 0, 0).unique_ratio == 0


def test_a_null_is_a_value_of_its_own():
    found = inspect(table(city=["x", None, None, "y", "x", "x"], sex=list("ffmmff")))
    separation = next(s for s in found.separations if s.columns == ("city",))
    assert (separation.distinct, separation.unique, separation.alike) == (3, 1, 3 + 1)


def test_sets_of_one_size_are_ranked_and_wide_tables_keep_the_strongest():
    data = pa.table({f"c{j}": [i % (j + 2) for i in range(N)] for j in range(14)})
    found = inspect(data, known=data.column_names)
    sizes = Counter(len(s.columns) for s in found.separations)
    assert sizes == {1: 14, 2: 66, 3: 220}
    for size in (1, 2, 3):
        ranks = [(-s.unique, s.alike) for s in found.strongest(size, 1000)]
        assert ranks == sorted(ranks)
    assert found.strongest(1)[0].columns == ("c13",)
    assert not any({"c0", "c1"} & set(s.columns) for s in found.separations if len(s.columns) > 1)


# The policy.


def test_a_policy_survives_odd_names():
    odd = ["a b", 'quo"te', "back\\slash", "new\nline", "tab\t#no comment", "ünïcode", "dotted.name", "del\x7f"]
    data = pa.table({name: [f"v{(i * (j + 1)) % 11}" for i in range(40)] for j, name in enumerate(odd)})
    found = inspect(data)
    assert list(tomllib.loads(found.toml())["columns"]) == odd
    built(found, data)


anything = st.one_of(
    st.lists(st.one_of(st.none(), st.text(max_size=6)), min_size=15, max_size=15),
    st.lists(st.one_of(st.none(), st.floats(allow_infinity=False)), min_size=15, max_size=15),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=15, max_size=15),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=15, max_size=15),
    st.lists(st.one_of(st.none(), st.dates()), min_size=15, max_size=15),
    st.lists(st.one_of(st.none(), st.decimals(-99, 99, places=2)), min_size=15, max_size=15),
    st.lists(st.from_regex(r"\A[0-9]{5}\Z"), min_size=15, max_size=15),
)


def _apart(name: str) -> bool:
    return bool(name.strip()) and "\0" not in name and name.lower() != "sex"


@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(_apart), anything, max_size=5))
def test_a_policy_runs_on_whatever_it_was_made_from(columns):
    data = pa.table({**columns, "sex": ["f", "m", "f"] * 5})
    found = inspect(data)
    built(found, data)
    json.dumps(found.as_dict(), allow_nan=False)


def test_reasons_stand_beside_the_columns():
    found = inspect(hospital(500))
    lines = found.toml().splitlines()
    for column in found.columns:
        line = next(line for line in lines if line.startswith(f"{column.name} = "))
        assert line.endswith(f"# {column.reason}")


def test_a_key_of_persons_that_repeats_is_the_entity():
    sex = ["f", "f", "f", "f", "m", "m", "m", "m"] * (N // 8)
    often = inspect(table(patient_id=[i // 4 for i in range(N)], sex=sex))
    assert often.entity == often.policy.release.entity == "patient_id"
    once = inspect(table(patient_id=[3 * i for i in range(N)], sex=sex))
    assert once.entity is once.policy.release.entity is None


@pytest.mark.parametrize("name", ["id", "nr", "subject", "pid", "caseid", "Patientennr"])
def test_persons_are_found_by_name_and_by_what_stays_the_same(name):
    person = [i % 50 for i in range(N)]
    sex = ["fm"[p % 2] for p in person]
    assert inspect(table(**{name: person, "sex": sex})).entity == name
    drawn = RNG.integers(0, 2, N)  # a key whose records differ in sex is no key of persons
    assert inspect(table(**{name: person, "sex": ["fm"[x] for x in drawn]})).entity is None


def test_persons_are_found_by_counting_where_the_name_says_nothing():
    person = RNG.permutation(np.repeat(np.arange(50) * 7 + 3, 4))
    sex, race = ["fm"[p % 2] for p in person], ["abc"[p % 3] for p in person]
    age = (20 + person % 60 + RNG.integers(0, 3, N)).tolist()
    data = table(qq=person.tolist(), sex=sex, race=race, age=age)
    assert inspect(data).entity == "qq"
    assert inspect(data.set_column(1, "sex", pa.array(RNG.permutation(sex)))).entity is None


def test_a_row_number_and_a_place_are_no_persons():
    sex = ["f", "m"] * (N // 2)
    assert inspect(table(id=list(range(N)), sex=sex)).entity is None
    assert inspect(table(hospital_no=[i % 50 for i in range(N)], sex=sex)).entity is None


def test_households_are_named():
    found = inspect(table(hhid=[i // 4 for i in range(N)], sex=["f", "m"] * (N // 2), age=[i % 40 for i in range(N)]))
    assert (found.household, found.entity) == ("hhid", None)
    assert roles(found)["hhid"] == "identifier"


def test_a_policy_for_tables_cuts_each_column_once():
    data = hospital(300)
    analysis, tables = inspect(data).policy, inspect(data, purpose="tables").policy
    assert (analysis.release.algorithm, tables.release.algorithm) == ("local", "single_dimensional")
    assert {column.cells for column in tables.columns.values()} == {"hierarchy"}
    assert "range" in {column.cells for column in analysis.columns.values()}


def test_a_large_table_gets_a_search_that_ends(monkeypatch):
    monkeypatch.setattr("shoal.inspection.policy_text.LARGE", 100)
    release = inspect(hospital(300)).policy.release
    assert (release.algorithm, release.dimension) == ("mondrian", "gain")


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 3), (5, 5), (100, 5)])
def test_k_is_one_that_the_table_can_meet(n, k):
    data = table(sex=pa.array(["f"] * n, pa.string()), age=pa.array(range(n), pa.int64()))
    assert tomllib.loads(inspect(data).toml())["require"] == [{"model": "k-anonymity", "k": k}]


def test_there_is_always_something_to_link_on():
    private = table(disease=["a", "b"] * 10, cost=["1", "2"] * 10)
    assert roles(inspect(private)) == {"disease": "quasi", "cost": "quasi"}
    constant = table(disease=["a", "b"] * 10, x=["1"] * 20)
    assert roles(inspect(constant)) == {"disease": "sensitive", "x": "quasi"}
    built(inspect(constant), constant)


def test_a_table_of_identifiers_has_no_policy():
    found = inspect(table(email=[f"u{i}@example.org" for i in range(30)]))
    with pytest.raises(DataError, match="all of them look like identifiers"):
        found.toml()


def test_two_columns_of_one_name_are_refused():
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["x", "x"])
    with pytest.raises(DataError, match="more than once"):
        inspect(twice)


def test_the_answer_is_plain_and_holds_no_value():
    data = table(
        secret=["qqq" + chr(97 + i % 26) * 3 for i in range(N)],
        zip=[f"{i % 90 + 77000}" for i in range(N)],
        note=[f"zzz {i} zzz" for i in range(N)],
    )
    found = inspect(data)
    for text in (json.dumps(found.as_dict()), found.toml()):
        assert "qqq" not in text
        assert "zzz" not in text
        assert "770" not in text
    first = found.as_dict()["columns"][0]
    assert set(first) == {
        *("name", "kind", "distinct", "nulls", "role", "reason", "sure", "proposal", "weight"),
        *("missing", "decimal", "thousands", "label", "categories"),
    }


# Values before names.


def test_both_coordinates_of_a_point_are_places_under_any_name():
    east, north = ([f"{start + x:.6f}" for x in RNG.random(N)] for start in (7, 51))
    for names in (("lat", "lon"), ("lng", "latitude"), ("x_coord", "y_coord"), ("a", "b")):
        found = inspect(table(**dict(zip(names, (north, east), strict=True)), age=[i % 40 for i in range(N)]))
        assert {roles(found)[name] for name in names} == {"quasi"}


def test_a_phone_number_within_remarks_removes_them_even_from_a_column_of_few_texts():
    remarks = ["fine", "none", "call +49 30 1234567"] * 20
    assert role_of("answer", remarks) == "identifier"


def test_census_tracts_are_a_place():
    tracts = [f"06{county:03}{tract:06}" for county in (1, 37) for tract in range(400100, 410100, 100)]
    assert role_of("x", tracts) == "quasi"


def test_experience_is_no_money_and_a_birthplace_no_date():
    assert role_of("exp", [str(i % 30) for i in range(N)]) == "quasi"
    assert role_of("totexp", [str(i % 30) for i in range(N)]) == "sensitive"
    found = inspect(table(birthplace=[f"P{i % 15}" for i in range(N)], sex=["f", "m"] * (N // 2)))
    assert next(column for column in found.columns if column.name == "birthplace").reason.startswith("a place")


def test_labels_of_proposed_codes_give_no_value_back() -> None:
    """Two providers share each prefix: a mask that covers both says that both occur."""
    providers = [f"{prefix:04}{last}" for prefix in range(100, 130) for last in (1, 2) for _ in range(8)]
    data = pa.table({"provider": providers, "sex": ["f", "m"] * (len(providers) // 2)})
    policy = shoal.inspect(data).policy
    assert policy.columns["provider"].cells == "set"
    assert "labels-give-back" not in {finding.kind for finding in shoal.anonymize(data, policy).findings}
    masked = policy.with_columns(provider={"cells": "hierarchy"})
    assert "labels-give-back" in {finding.kind for finding in shoal.anonymize(data, masked).findings}
