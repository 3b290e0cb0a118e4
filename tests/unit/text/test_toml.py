"""If these fail, a text that is written as TOML is read as another one."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.text import toml

TEXTS = st.text() | st.sampled_from(
    ["", " ", "a.b", "'", '"', '"""', "\\", "\n", "\r\n", "\t", "\x00", "\x1f", "\x7f", "\x85", "\u2028", "é", "日本"]
)  # fmt: skip
NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    TEXTS | NUMBERS | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(TEXTS, VALUES)
def test_what_is_written_reads_back_the_same(key: str, value: Any) -> None:
    read = tomllib.loads(f"{toml.key(key)} = {toml.value(value)}\n")
    assert read == {key: value}
    assert same_types(read[key], value)


def same_types(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return all(same_types(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return all(map(same_types, left, right))
    return type(left) is type(right)


@given(VALUES)
def test_a_value_takes_one_line(value: Any) -> None:
    assert len(toml.value(value).split("\n")) == 1


def test_a_key_is_quoted_only_where_it_must_be() -> None:
    assert [toml.key(name) for name in ("age", "native-country", "x_1", "1")] == ["age", "native-country", "x_1", "1"]
    assert [toml.key(name) for name in ("", "a b", "a.b", "é", 'a"b')] == ['""', '"a b"', '"a.b"', '"é"', '"a\\"b"']


def test_infinite_numbers_have_their_words() -> None:
    assert tomllib.loads(f"x = {toml.value([float('inf'), float('-inf')])}") == {"x": [float("inf"), float("-inf")]}


@pytest.mark.parametrize("value", [None, object(), {1, 2}])
def test_what_toml_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=f"TOML has no {type(value).__name__}"):
        toml.value(value)
