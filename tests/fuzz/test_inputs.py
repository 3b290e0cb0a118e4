"""A part of the fuzzing of inputs that fits in a test run; ``inputs.py`` beside this runs for as long as one likes."""

import pytest

from fuzz import inputs


@pytest.mark.parametrize(("first", "n"), [(10**6, 400), pytest.param(2 * 10**6, 800, marks=pytest.mark.long)])
def test_strange_input_ends_in_errors_of_ours_that_show_nothing(first: int, n: int) -> None:
    counts, wrong = inputs.run(n, 0, first=first, seconds=60)
    assert not wrong, "\n".join(wrong)
    assert counts.total() >= 100
    for kind in inputs.KINDS:
        assert counts[f"{kind}: refused"], counts  # no kind is left untried
    assert sum(n for outcome, n in counts.items() if outcome.endswith("accepted")) >= 0.05 * counts.total()
