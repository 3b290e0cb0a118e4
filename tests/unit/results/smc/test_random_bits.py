"""Random bits: a biased or wrong one would make comparisons tell what they compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("parties")

Alone = Callable[[Callable[[Any], Any]], Any]


@pytest.mark.parametrize("signed", [False, True])
def test_bits_are_fair(alone: Alone, signed: bool) -> None:
    async def drawn(runtime: Any) -> list[int]:
        secint = runtime.SecInt(32)
        return [int(bit) for bit in await runtime.output(runtime.random_bits(secint, 4000, signed))]

    bits = alone(drawn)
    low = -1 if signed else 0
    assert set(bits) == {low, 1}
    assert abs(bits.count(1) - 2000) < 7 * 1000**0.5


def test_bits_of_fixed_point_numbers_are_ones(alone: Alone) -> None:
    async def drawn(runtime: Any) -> list[float]:
        secfxp = runtime.SecFxp(32, 8)
        return [float(bit) for bit in await runtime.output(runtime.random_bits(secfxp, 200))]

    assert set(alone(drawn)) == {0.0, 1.0}


def test_no_bits(alone: Alone) -> None:
    async def drawn(runtime: Any) -> list[Any]:
        return list(runtime.random_bits(runtime.SecInt(32), 0))

    assert alone(drawn) == []
