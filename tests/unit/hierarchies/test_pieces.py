"""Many texts in pieces: the same as in one call, whatever the length of a piece."""

import random

import numpy as np
import pytest

from shoal.hierarchies import pieces


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 17, 100])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 1000])
def test_pieces_give_what_one_call_gives(monkeypatch: pytest.MonkeyPatch, n: int, length: int) -> None:
    monkeypatch.setattr(pieces, "PIECE", length)
    draw = random.Random(n)
    values = [f"{draw.choice('aäz𝒳')}{draw.randrange(30)}" for _ in range(n)]
    number_of = {text: i for i, text in enumerate(values[: n // 2])}
    assert [value for piece in pieces.pieces_of(values) for value in piece] == values
    assert list(pieces.first_seen(values)) == list(dict.fromkeys(values))
    assert pieces.in_text_order(values) == sorted(set(values))
    found = pieces.looked_up(values, number_of, -7)
    assert found.dtype == np.int32
    assert found.tolist() == [number_of.get(value, -7) for value in values]
    assert pieces.looked_up(tuple(values), number_of).tolist() == [number_of.get(value, -1) for value in values]
