"""Simple lines are scanned by NumPy, all others by the compiled scan: both find the same."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.engines.formats import grammar
from shoal.engines.formats.grammar import Scan
from shoal.errors import DataError


def scan(pieces, *, writing):
    """All that a scan finds: its state, its error, and the text if there is none."""
    found, out = Scan("it", ","), b""
    try:
        for piece in pieces:
            out += found.feed(piece, writing=writing)
        out += found.end(writing=writing)
        error = None
    except DataError as refused:
        error, out = str(refused), b""
    state = found._state.tolist()
    if state[grammar.POSITION] not in (grammar.QUOTED, grammar.CLOSING):
        state[grammar.COMMAS] = state[grammar.INNER] = 0  # they count within a quoted field, and begin anew with it
    return state, out, error


@pytest.fixture(scope="module")
def compiled_alone():
    """The compiled scan, whatever the size of the file."""

    def run(pieces, *, writing):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grammar.Scan, "_simple", lambda *_: False)
            return scan(pieces, writing=writing)

    return run


SIMPLE = st.lists(st.sampled_from([b"a", b"bc", b",", b" ", b"\n", b"\n", b"x,y\n", b"1,2\n"]), max_size=14)
ALL = st.lists(
    st.sampled_from([b"a", b",", b" ", b"\n", b"\r\n", b"\r", b'"', b"\0", b"x,y\n", b'"1",2\n']), max_size=12
)


ENDED = st.lists(st.sampled_from([b"a", b",", b" ", b"\r\n", b"x,y\r\n", b"\r\n"]), max_size=12)


FIELDS = st.sampled_from([b"a", b"", b" ", b'""', b'"a"', b'"a,b"', b'"a ""b"""', b'""""', b'"a\nb"', b'a"b', b' "a"'])
RECORDS = st.lists(st.lists(FIELDS, min_size=2, max_size=3).map(b",".join), max_size=5)
QUOTED = st.tuples(RECORDS, st.sampled_from([b"\n", b"\r\n", b"\r"])).map(
    lambda each: [line + each[1] for line in each[0]]
)


def cut(text, places):
    """Split a text at places, as a file is read in pieces."""
    ends = sorted(place % (len(text) + 1) for place in places)
    return [text[first:last] for first, last in zip([0, *ends], [*ends, len(text)], strict=True)]


@example(texts=[b'""a', b"a"], places=[3], writing=False)  # the byte of the error, whichever scan finds it
@given(texts=SIMPLE | ENDED | QUOTED | ALL, places=st.lists(st.integers(0, 40), max_size=3), writing=st.booleans())
def test_both_scans_find_the_same(compiled_alone, texts, places, writing):
    pieces = cut(b"".join(texts), places)
    assert scan(pieces, writing=writing) == compiled_alone(pieces, writing=writing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar, "SHORT", -1)
        assert scan(pieces, writing=writing) == compiled_alone(pieces, writing=writing)


def test_simple_lines_need_no_compiled_scan(monkeypatch):
    monkeypatch.setattr(grammar, "scanned", None)
    state, out, error = scan([b"\nage,sex\n31", b",f\n\n34,", b"m"], writing=True)
    assert (out, error) == (b"age,sex\n31,f\n34,m\n", None)
    assert [state[i] for i in (grammar.RECORDS, grammar.WIDTH, grammar.BLANK, grammar.LONGEST)] == [3, 2, 2, 7]


def test_nor_do_long_files_without_quotes(monkeypatch):
    monkeypatch.setattr(grammar, "scanned", None)
    monkeypatch.setattr(grammar, "SHORT", -1)
    state, out, error = scan([b"\nage,sex\n31", b",f\n\n34,m\n"], writing=True)
    assert (out, error) == (b"age,sex\n31,f\n34,m\n", None)
    assert [state[i] for i in (grammar.RECORDS, grammar.WIDTH, grammar.BLANK)] == [3, 2, 2]


def test_nor_do_lines_that_end_as_on_windows(monkeypatch):
    monkeypatch.setattr(grammar, "scanned", None)
    state, out, error = scan([b"age,sex\r\n31,f\r\n", b"34,", b"m\r\n"], writing=True)
    assert (out, error) == (b"age,sex\n31,f\n34,m\n", None)
    assert [state[i] for i in (grammar.RECORDS, grammar.ENDED_CRLF, grammar.ENDED_LF)] == [3, 3, 0]


def test_nor_do_quotes_around_whole_fields(monkeypatch):
    monkeypatch.setattr(grammar, "scanned", None)
    state, out, error = scan([b'age,"sex"\n"31, 32",', b'"f"\n"a ""b""",', b'""\n'], writing=True)
    assert (out, error) == (b'age,"sex"\n"31, 32","f"\n"a ""b""",""\n', None)
    assert [state[i] for i in (grammar.RECORDS, grammar.WIDTH, grammar.RAGGED)] == [3, 2, 0]


def test_a_long_file_changes_to_the_compiled_scan_between_two_records(monkeypatch):
    pieces = [b"age,sex\n31,f\n3", b"4,m\n35,f\n", b"36,m"]
    whole = scan(pieces, writing=True)
    for short in range(0, 30, 3):
        monkeypatch.setattr(grammar, "SHORT", short)
        assert scan(pieces, writing=True) == whole
