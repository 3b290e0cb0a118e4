"""A part of the fuzzing of whole tables; the program beside runs as long as anybody likes."""

import pytest

from fuzz.tables import fuzz


@pytest.mark.parametrize(
    ("first", "n"), [(0, 50), *(pytest.param(first, 100, marks=pytest.mark.long) for first in range(50, 250, 100))]
)
def test_no_door_calls_safe_what_is_not(first: int, n: int) -> None:
    tally = fuzz(n, seed=0, first=first)
    assert not tally.wrong, "\n".join(tally.wrong[:5])
    assert tally.counts["tables"] == n
    assert tally.counts["verdicts of check"] > 1.5 * n
    assert tally.counts["requirements of releases"] > n // 20
