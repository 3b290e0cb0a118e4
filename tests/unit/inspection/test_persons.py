"""The column that identifies persons: anything that looks like a key and repeats, unless something contradicts it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.inspection.inspect import inspect

N = 200
RNG = np.random.default_rng(8)
PERSON = np.arange(N) // 2


@pytest.mark.parametrize("name", ["trt", "rx", "arm", "eye"])
def test_a_treatment_or_an_eye_contradicts_no_person(name):
    both = pa.table({"id": PERSON, name: ["l", "r"] * (N // 2), "age": (20 + PERSON % 40)})
    assert inspect(both).entity == "id"


@pytest.mark.parametrize("name", ["sex", "race", "birth_year"])
def test_what_cannot_change_contradicts_a_person(name):
    mixed = pa.table({"id": PERSON, name: RNG.integers(0, 3, N), "age": (20 + PERSON % 40)})
    assert inspect(mixed).entity is None


@pytest.mark.parametrize(
    "key",
    [
        [f"123e4567-e89b-12d3-a456-4266141{p:05}" for p in PERSON],
        [f"p{p}@mail.example" for p in PERSON],
        [f"@fish_{p}" for p in PERSON],
        [f"00:1a:2b:3c:{p // 256:02x}:{p % 256:02x}" for p in PERSON],
    ],
)
def test_values_that_identify_are_persons_whatever_their_column_is_called(key):
    events = pa.table({"what": RNG.choice(["open", "close"], N), "zq": key, "age": 20 + PERSON % 40})
    assert inspect(events).entity == "zq"


def test_pages_that_were_visited_are_no_persons():
    pages = [f"https://sea.example/{i % 40}" for i in range(N)]
    assert inspect(pa.table({"page": pages, "age": RNG.integers(20, 60, N)})).entity is None


def test_a_column_with_nulls_is_no_person():
    some = [None, *PERSON.tolist()[1:]]
    assert inspect(pa.table({"id": some, "age": 20 + PERSON % 40})).entity is None
    # The number of another record, such as the case of a control, has nulls where there is none.
    data = pa.table({"id": list(range(N)), "case.id": some, "age": 20 + PERSON % 40})
    assert inspect(data).entity is None
    assert inspect(data).policy.release.entity is None


def test_a_key_of_persons_comes_before_that_of_visits_and_devices():
    device = [f"123e4567-e89b-12d3-a456-4266141{p:05}" for p in RNG.integers(0, 90, N)]
    data = pa.table({"device": device, "visit_no": np.arange(N) % 60, "patient": PERSON, "age": 20 + PERSON % 40})
    assert inspect(data).entity == "patient"


@pytest.mark.parametrize("other", ["01", "1.0", "1 "])
def test_spellings_of_one_person_are_noted(other):
    keys = [str(p) for p in PERSON]
    keys[3] = other
    people = pd.DataFrame({"id": keys, "age": 20 + PERSON % 10})
    found = inspect(people)
    assert found.entity == "id"
    assert any("other spellings" in note for note in found.notes)
    release = shoal.anonymize(people, found.policy)
    assert any(finding.kind == "persons-spelled" for finding in release.findings)
    keys[3] = "1"
    clean = pd.DataFrame({"id": keys, "age": 20 + PERSON % 10})
    assert inspect(clean).remarks == ()
    release = shoal.anonymize(clean, inspect(clean).policy)
    assert not any(finding.kind == "persons-spelled" for finding in release.findings)
