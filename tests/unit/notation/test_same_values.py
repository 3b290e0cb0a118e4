"""Texts that say nothing add no diversity: a class of one disease and unknown ones would tell that disease."""

import pytest

from shoal.notation.same_values import says_nothing

NO_ANSWER = ["", "k.A.", "keine Angabe", "Weiß nicht", "don't know", "sans réponse", " NS/NC ", None]


@pytest.mark.parametrize("text", NO_ANSWER)
def test_answers_that_say_nothing(text: str | None) -> None:
    assert says_nothing(text)


@pytest.mark.parametrize("text", ["none", "no", "flu", "0"])
def test_answers_that_say_something(text: str) -> None:
    assert not says_nothing(text)
