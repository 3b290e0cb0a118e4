"""A column is read once for all that ask for it, and what was read of another is never taken for it."""

import pyarrow as pa
import pytest

from shoal.attacks import column_matching
from shoal.attacks.column_matching import as_in, read_known_column
from shoal.attacks.read_cache import cached_read, encoded_once, shared_reads, texts_key
from shoal.notation import codec
from shoal.policy import Policy

DATES = ["1964-09-13", "1964-09-14", "1970-01-01"]


def coded(values):
    return codec.encode_texts("q", pa.chunked_array([pa.array(values, pa.string())]))


def policy(spec):
    columns = {"q": {"role": "quasi", "hierarchy": spec}}
    return Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 1}]})


@pytest.fixture
def readings(monkeypatch):
    """The number of released texts of every reader that was made."""
    made = []

    class Counting(column_matching.Reader):
        def __init__(self, released, *args, **kwargs):
            made.append(len(released))
            super().__init__(released, *args, **kwargs)

    monkeypatch.setattr(column_matching, "Reader", Counting)
    return made


def test_the_same_column_is_read_once_until_the_end(readings):
    spec = policy({"dates": ["month", "year"]})

    def read():
        return read_known_column("q", coded(DATES), coded(["1964-09", "1970"]), coded(DATES), spec)

    with shared_reads():
        first = read()
        with shared_reads():
            assert read() is first
        assert read() is first
        assert readings == [2]
    assert read() is not first
    assert readings == [2, 2]


def test_equal_values_are_found_once(readings):
    with shared_reads():
        for _ in range(2):
            assert as_in(["23", "5"], "q", ["23.0", "7"], None) == ["23", "7"]
        assert as_in(["23.0", "5"], "q", ["23", "7"], None) == ["23.0", "7"]
    assert readings == [2, 2]


MONTHS = {"dates": ["month", "year"]}
SAME = {"known": DATES, "released": ["1964-09", "1970-01"], "ground": DATES, "spec": MONTHS, "wildcard": False}
OTHER = {
    "known": DATES[:2],
    "released": ["1964-09", "1970-02"],
    "ground": [*DATES, None],
    "spec": {"dates": ["year"]},
    "wildcard": True,
}


@pytest.mark.parametrize("what", OTHER)
def test_another_column_is_read_anew(what, readings):
    def read(given):
        ground = coded(given["ground"])
        return read_known_column(
            "q",
            coded(given["known"]),
            coded(given["released"]),
            ground,
            policy(given["spec"]),
            wildcard=given["wildcard"],
        )

    def told(column):
        return {name: getattr(value, "tolist", lambda value=value: value)() for name, value in vars(column).items()}

    other = {**SAME, what: OTHER[what]}
    alone = [told(read(given)) for given in (SAME, other)]
    readings.clear()
    with shared_reads():
        together = [told(read(given)) for given in (SAME, other)]
    assert together == alone
    assert len(readings) == 2


def test_the_rows_count_too(readings):
    """The same texts in other rows: how many cells could not be read differs."""
    released = ["word", "word", "1964-09"], ["word", "1964-09", "1964-09"]
    with shared_reads():
        cells = [
            read_known_column("q", coded(DATES), coded(each), coded(DATES), policy(MONTHS)).unread_cells
            for each in released
        ]
    assert cells == [2, 1]


def test_texts_that_join_to_the_same_are_different():
    assert len({texts_key(texts) for texts in ([], [""], ["", ""], ["ab"], ["a", "b"], ["", "ab"], ["b", "a"])}) == 7
    assert texts_key(("a", "b")) == texts_key(["a", "b"])


def test_an_error_is_not_kept():
    def fail():
        raise ZeroDivisionError

    with shared_reads():
        with pytest.raises(ZeroDivisionError):
            cached_read(fail, lambda: "key")
        assert cached_read(lambda: 1, lambda: "key") == 1
        assert cached_read(lambda: 2, lambda: "key") == 1
    assert cached_read(lambda: 2, lambda: "key") == 2


def test_a_column_in_the_same_memory_is_encoded_once() -> None:
    column = pa.chunked_array([["b", "a"], ["a", None]])
    taken = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", "y"]))
    other = pa.DictionaryArray.from_arrays(taken.indices, pa.array(["y", "z"]))
    empty = pa.chunked_array([], pa.string())
    columns = [column, column[1:], column[:3], pa.chunked_array([["b", "a"], ["a", "c"]]), empty]
    columns += [pa.chunked_array([taken]), pa.chunked_array([other]), pa.chunked_array([[1.5, None]])]
    with shared_reads():
        found = [encoded_once("c", each) for each in columns]
        assert encoded_once("c", pa.table({"c": column})["c"]) is found[0]
        assert [encoded_once("c", each).texts for each in columns] == [each.texts for each in found]
    for each, coded in zip(columns, found, strict=True):
        expected = codec.encode_texts("c", each)
        assert coded.texts == expected.texts
        assert coded.codes.tolist() == expected.codes.tolist()
    assert encoded_once("c", column) is not found[0]  # nothing is kept beyond the block
