"""A part of the fuzzing of files that fits in a test run; ``files.py`` beside this runs for as long as one likes."""

import pytest

from fuzz import files


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1_000, marks=pytest.mark.long), pytest.param(2_000, marks=pytest.mark.long)]
)
def test_both_readers_and_pythons_strict_csv_agree(seed: int) -> None:
    outcomes = files.run(1_000, seed)
    assert sum(outcomes.values()) == 1_000
    assert min(outcomes["read"], outcomes["refused"]) >= 250  # neither side is left untried
