"""A part of the fuzzing of files that fits in a test run; ``files.py`` beside this runs for as long as one likes."""

import pytest

from fuzz import files


@pytest.mark.parametrize(("seed", "n"), [(0, 400), pytest.param(1_000, 1_000, marks=pytest.mark.long)])
def test_both_readers_and_pythons_strict_csv_agree(seed: int, n: int) -> None:
    outcomes = files.run(n, seed)
    assert sum(outcomes.values()) == n
    assert min(outcomes["read"], outcomes["refused"]) >= n // 4  # neither side is left untried
