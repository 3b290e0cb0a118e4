"""How many random tables a property is tried on: an eighth of what it names, all where ``SHOAL_TESTS=thorough``.

A test that numbers its tables itself takes a part of them always, half of the others where the long matrices run.

The profile that ``conftest`` loads says the rest: no deadline, no complaint about slow draws.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

THOROUGH = os.environ.get("SHOAL_TESTS") == "thorough"


def examples(n: int) -> settings:
    """Settings for a test that a thorough run tries on ``n`` random tables."""
    return settings(max_examples=n if THOROUGH else max(10, n // 8))


def tables(n: int, always: int) -> list[Any]:
    """The numbers of ``n`` tables as parameters: the first always, half of the others with the long matrices."""
    end = n if THOROUGH else (always + n) // 2
    return [
        pytest.param(range(always), id=f"{always} tables"),
        pytest.param(range(always, end), id=f"{end - always} tables more", marks=pytest.mark.long),
    ]


def some(values: Iterable[Any], always: int) -> list[Any]:
    """Values as parameters: the first always, the others with the long matrices."""
    return [pytest.param(value, marks=[] if i < always else [pytest.mark.long]) for i, value in enumerate(values)]
