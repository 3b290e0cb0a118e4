"""How many random tables a property is tried on: a quarter of what it names, all where ``SHOAL_TESTS=thorough``.

The profile that ``conftest`` loads says the rest: no deadline, no complaint about slow draws.
"""

import os

from hypothesis import settings

THOROUGH = os.environ.get("SHOAL_TESTS") == "thorough"


def examples(n: int) -> settings:
    """Settings for a test that a thorough run tries on ``n`` random tables."""
    return settings(max_examples=n if THOROUGH else max(10, n // 4))
