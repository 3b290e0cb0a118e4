"""What functions return can be pickled and copied: equal afterwards, and without secret keys."""

import copy
import pickle
from dataclasses import asdict

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import DataError, OutputError
from shoal.release import replay

AGES = ["31", "34", "36", "38", "51", "53", "57", "58"]
PEOPLE = pa.table({"name": list("abcdefgh"), "age": AGES, "disease": ["flu", "cold"] * 4})
POLICY = shoal.Policy.of(
    {
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "disease": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 4}],
    }
)
COPIES = pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
FRAMES = {
    "pyarrow": PEOPLE,
    "batch": PEOPLE.to_batches()[0],
    "dictionaries": PEOPLE.set_column(1, "age", PEOPLE["age"].combine_chunks().dictionary_encode()),
    "pandas": PEOPLE.to_pandas().astype({"disease": "category"}),
    "polars": pl.from_arrow(PEOPLE).with_columns(pl.col("disease").cast(pl.Categorical)),
    "lazy": pl.from_arrow(PEOPLE).lazy(),
}


def told(certificate):
    """What a certificate says, without the digests of its key and the time."""
    return {name: part for name, part in certificate.items() if name not in ("input", "hierarchies", "created")}


@COPIES
@pytest.mark.parametrize("algorithm", ["optimal", "k_optimize", "mondrian"])  # levels, cuts, cells
def test_releases_and_their_recodings(copied, algorithm, tmp_path):
    release = shoal.anonymize(PEOPLE, _by(algorithm))
    again = copied(release)
    assert again.table.equals(release.table)
    assert told(again.certificate) == told(release.certificate)
    assert (again.loss, again.levels, again.suppressed) == (release.loss, release.levels, release.suppressed)
    assert again.policy == release.policy
    assert again.verdicts.same(release.verdicts)
    assert type(again.recoding) is type(release.recoding)
    assert replay.described(again) == replay.described(release)
    again.save(tmp_path / "again.csv")
    release.save(tmp_path / "release.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "release.csv").read_bytes()
    assert again.attacked(sample=None).attacks.as_dict() == release.attacked(sample=None).attacks.as_dict()


@COPIES
@pytest.mark.parametrize("kind", FRAMES)
def test_the_frame_that_came_in_comes_back(copied, kind):
    release = shoal.anonymize(FRAMES[kind], POLICY)
    before, after = release.table, copied(release).table
    assert type(after) is type(before)
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before)
    else:
        before, after = (frame.collect() if kind == "lazy" else frame for frame in (before, after))
        assert after.equals(before)
        assert after.schema == before.schema


def test_the_key_of_the_digests_stays_out_of_a_pickle():
    release = shoal.anonymize(PEOPLE, POLICY)
    stored = pickle.dumps(release)
    assert release.key not in stored
    again = pickle.loads(stored)
    assert again.key != release.key
    key = bytes.fromhex(release.receipt["key"])
    assert again.with_key(key).certificate["input"] == release.certificate["input"]


def test_a_copy_in_memory_has_the_same_key():
    release = shoal.anonymize(PEOPLE, POLICY)
    assert copy.deepcopy(release).certificate["input"] == release.certificate["input"]
    assert copy.copy(release).table.equals(release.table)


@COPIES
def test_policies(copied):
    again = copied(POLICY)
    assert again == POLICY
    assert hash(again) == hash(POLICY)
    assert again.folder == POLICY.folder
    with pytest.raises(ValueError, match="frozen"):
        again.preset = "wp216"


@COPIES
def test_inspections(copied):
    found = shoal.inspect(PEOPLE)
    again = copied(found)
    assert again == found
    assert again.policy == found.policy
    assert again.toml() == found.toml()
    assert again._repr_html_() == found._repr_html_()


@COPIES
@pytest.mark.parametrize(
    "made",
    [
        lambda: shoal.check(PEOPLE, POLICY),
        lambda: shoal.measure(PEOPLE, quasi=["age"], sensitive=["disease"]),
        lambda: shoal.frontier(PEOPLE, POLICY, k=[2, 4]),
        lambda: shoal.explore(PEOPLE, POLICY, tolerable=0.5),
        lambda: shoal.compare(PEOPLE, POLICY, algorithms=["optimal", "mondrian"]),
        lambda: shoal.attack(shoal.anonymize(PEOPLE, POLICY), sample=None),
        lambda: shoal.compare_with_original(PEOPLE, shoal.anonymize(PEOPLE, POLICY).table, POLICY),
        lambda: shoal.verify_certificate(
            (release := shoal.anonymize(PEOPLE, POLICY)).certificate, release.table, original=PEOPLE
        ),
        lambda: replay.replay(replay.described(shoal.anonymize(PEOPLE, POLICY)), PEOPLE),
    ],
    ids=["check", "measure", "frontier", "explore", "compare", "attack", "beside", "verify", "replay"],
)
def test_other_answers(copied, made):
    answer = made()
    again = copied(answer)
    assert type(again) is type(answer)
    plain = [each.as_dict() if hasattr(each, "as_dict") else asdict(each) for each in (again, answer)]
    assert repr(plain[0]) == repr(plain[1])  # NaN is not equal to itself
    if isinstance(answer, replay.Replay):
        assert again.table.equals(answer.table)


def test_errors_keep_their_hint():
    error = OutputError("no", "do", option="--this")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.option) == (OutputError, str(error), "--this")


def test_rows_in_an_engine_do_not_pickle_and_say_so():
    import ibis

    release = shoal.anonymize(ibis.memtable(PEOPLE), POLICY)
    with pytest.raises(DataError, match="stay in their engine"):
        pickle.dumps(release)


def _by(algorithm):
    fields = POLICY.model_dump(mode="json", exclude_none=True)
    return shoal.Policy.of({**fields, "release": {"algorithm": algorithm}})
