"""Formulas, and what a computation opens."""

from fractions import Fraction

import pytest

from shoal import he
from shoal.errors import PolicyError
from shoal.results.he.computation import NumberColumn, Packing, fraction_of_text
from shoal.results.he.parameters import PROBES, EncryptionParameters


@pytest.mark.parametrize(
    ("text", "weights", "intercept"),
    [
        ("age", {"age": 1}, 0),
        ("-age", {"age": -1}, 0),
        ("0.5*age+2*stay-3", {"age": Fraction(1, 2), "stay": 2}, -3),
        (" 1e-2 * body mass + 4 - age ", {"body mass": Fraction(1, 100), "age": -1}, 4),
        ("age + age", {"age": 2}, 0),
        ("2*infected=yes", {"infected=yes": 2}, 0),
    ],
)
def test_formulas(text: str, weights: dict[str, Fraction], intercept: int) -> None:
    assert he.LinearScore.parsed(text).exact == (weights, intercept)


@pytest.mark.parametrize("text", ["2 age", "age**2", "2**age", "age*2", "+", "1.2.3*age", "3*", "*age"])
def test_formulas_that_cannot_be_read(text: str) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        he.LinearScore.parsed(text)


@pytest.mark.parametrize(
    "asked",
    [{}, {"score": {"a": he.LinearScore({})}}, {"score": {"a": he.LinearScore({"x": 0})}}, {"regression": (("y",),)}],
)
def test_computations_that_make_no_sense(asked: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        he.Computation(**asked)  # type: ignore[arg-type]


def test_a_computation_is_read_from_a_header_as_it_was() -> None:
    asked = he.Computation(("a",), ("b",), {"s": he.LinearScore({"a": 0.1}, "-2.5")}, (("a", "b", "c"),))
    read = he.Computation.read(asked.as_dict())
    assert read.as_dict() == asked.as_dict()
    assert read.opened == asked.opened
    assert "sum of a·a" not in asked.opened  # the target's square is not needed


@pytest.mark.parametrize("text", ["1e999999999", "", "0x1", "1/", 3, None, "9" * 61])
def test_fractions_in_headers_are_short(text: object) -> None:
    with pytest.raises(ValueError, match="not a fraction"):
        fraction_of_text(text)


def test_probes_stay_within_the_magnitude() -> None:
    for column in (NumberColumn("a", Fraction(0), Fraction(120)), NumberColumn("b", Fraction(-7), Fraction(1, 2), 2)):
        assert len(column.probes) == PROBES
        assert max(map(abs, column.probes)) == column.magnitude


def test_what_could_overflow_is_refused_before_it_is_computed() -> None:
    columns = {"cost": NumberColumn("cost", Fraction(0), Fraction(10**5), 2)}
    packing = Packing(EncryptionParameters.chosen("bfv", 8192), columns, (100_000,))
    asked = he.Computation(sum=("cost",), regression=())
    packing.require_room(asked.totals[0], masked=True)
    square = he.Computation(regression=(("age", "cost"),)).totals[-1]
    assert square.columns == ("cost", "cost")
    with pytest.raises(PolicyError, match="could have more than 17 digits") as told:
        packing.require_room(square, masked=True)
    assert told.value.option == "--no-mask"
    packing.require_room(square, masked=False)  # thirteen rows in a slot
    score = he.Computation(score={"s": he.LinearScore({"cost": "1.00000000000000001"})}).scores[0]
    with pytest.raises(PolicyError, match="round the weights"):
        packing.require_room(score, masked=True)
