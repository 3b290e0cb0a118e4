"""A part of the fuzzing of whole tables; the program beside runs as long as anybody likes."""

import pytest

from fuzz.tables import fuzz


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=[pytest.mark.long] if first >= 100 else []) for first in range(0, 600, 100)]
)
def test_no_door_calls_safe_what_is_not(first: int) -> None:
    tally = fuzz(100, seed=0, first=first)
    assert not tally.wrong, "\n".join(tally.wrong[:5])
    assert tally.counts["tables"] == 100
    assert tally.counts["verdicts of check"] > 150
    assert tally.counts["requirements of releases"] > 5
