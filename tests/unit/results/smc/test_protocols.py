"""Protocols with one party, whose shares are values: what comes out, and that nothing else is opened on the way."""

from __future__ import annotations

import asyncio
import importlib
import statistics
import sys
import types
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal.errors import InfeasibleError
from shoal.results.smc import protocols
from shoal.results.smc.local import LocalRows
from shoal.results.smc.plan import SharePlan

share = importlib.import_module("shoal.results.smc.share")

pytestmark = pytest.mark.xdist_group("parties")

Alone = Callable[[Callable[[Any], Any]], Any]
LIMIT = 2000
BOUNDS = {name: (str(-LIMIT), str(LIMIT)) for name in "xyz"}
SESSION = {"nonces": ["one", "two"]}
few = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
numbers = st.integers(-LIMIT, LIMIT)


def rows_of(plan: SharePlan, cells: list[tuple[int, ...]]) -> LocalRows:
    values = {name: [row[i] for row in cells] for i, name in enumerate("xyz") if name in plan.columns}
    return LocalRows(plan, values, [1] * len(cells))


def computed(alone: Alone, plan: SharePlan, cells: list[tuple[int, ...]]) -> tuple[dict[str, Any], list[int]]:
    """Return the figures, and every number that was opened on the way to them, by shoal's own functions."""
    rows, opened = rows_of(plan, cells), []

    async def protocol(runtime: Any) -> dict[str, Any]:
        def output(numbers: Any, *rest: Any, **options: Any) -> Any:
            found = original(numbers, *rest, **options)
            if sys._getframe(1).f_globals["__name__"].startswith("shoal."):
                found = asyncio.ensure_future(recorded(found))
            return found

        async def recorded(awaited: Any) -> Any:
            found = await awaited
            opened.extend(int(number) for number in (found if isinstance(found, list) else [found]))
            return found

        original, runtime.output = runtime.output, output
        try:
            links = types.SimpleNamespace(runtime=runtime, so_far="")
            return (await share._computed(links, rows, share.own_figures(rows, 1), SESSION))[0]
        finally:
            del runtime.output

    return alone(protocol), opened


def plain_quantile(values: list[int], fraction: Fraction) -> int:
    return sorted(values)[-(-fraction.numerator * len(values) // fraction.denominator) - 1]


# ── Shamir's scheme ─────────────────────────────────────────────────────────────────────────────────────────────

# f(x) = 1234 + 166 x + 94 x² modulo 1613, the usual worked example of A. Shamir, "How to share a secret", CACM 1979.
SHARES = {1: 1494, 2: 329, 3: 965, 4: 176, 5: 1188, 6: 775}


def test_any_three_of_six_shares_are_the_secret(alone: Alone) -> None:
    from mpyc import finfields, thresha

    def recombined(*points: int) -> int:
        return int(thresha.recombine(finfields.GF(1613), [(i, [SHARES[i]]) for i in points])[0]) % 1613

    assert {recombined(*points) for points in combinations(SHARES, 3)} == {1234}
    assert 1234 not in {recombined(*points) for points in combinations(SHARES, 2)}


def test_one_share_of_three_is_uniform_whatever_the_secret_is(alone: Alone) -> None:
    from mpyc import finfields, thresha

    field, n = finfields.GF(7), 7000
    for secret in (0, 3):
        for shares in thresha.random_split(field, [secret] * n, 1, 3):
            counts = [shares.count(x) for x in range(7)]
            assert sum((count - n / 7) ** 2 / (n / 7) for count in counts) < 40  # 6 degrees of freedom: 1 in 10^6


# ── secure is plain ─────────────────────────────────────────────────────────────────────────────────────────────


@few
@given(values=st.lists(numbers, min_size=2, max_size=20), fraction=st.sampled_from(["0.5", "0.123456789", "0.999"]))
@example(values=[-LIMIT] * 3, fraction="0.000000001")
@example(values=[LIMIT, -LIMIT], fraction="0.5")
def test_secure_is_plain(values: list[int], fraction: str, alone: Alone) -> None:
    plan = SharePlan(
        count=True,
        sum=("x",),
        variance=("x",),
        minimum=("x",),
        maximum=("x",),
        quantile=(("x", fraction),),
        histogram={"x": (str(-LIMIT), "0", str(LIMIT))},
        bounds=BOUNDS,
        at_least=1,
    )
    figures, _ = computed(alone, plan, [(value,) for value in values])
    assert figures == {
        "count": len(values),
        "sum of x": sum(values),
        "variance of x": float(statistics.variance([Fraction(value) for value in values])),
        "rows with x": len(values),
        "histogram of x": {
            f"[{-LIMIT}, 0)": sum(value < 0 for value in values),
            f"[0, {LIMIT}]": sum(value >= 0 for value in values),
            "other": 0,
        },
        "minimum of x": min(values),
        "maximum of x": max(values),
        f"quantile {fraction} of x": plain_quantile(values, Fraction(fraction)),
    }


def test_the_largest_sums_do_not_wrap(alone: Alone) -> None:
    """As many rows as there may be, at the bound: their squares have 95 bits, and the products of sums 190."""
    plan = SharePlan(variance=("x",), sum=("x",), at_least=1)
    n, x = 2**31, 2**32 - 1
    rows = LocalRows(plan, {"x": [x, -x]}, [n - 2, 2])

    async def protocol(runtime: Any) -> dict[str, Any]:
        links = types.SimpleNamespace(runtime=runtime, so_far="")
        return (await share._computed(links, rows, share.own_figures(rows, 1), SESSION))[0]

    mean = Fraction((n - 4) * x, n)
    spread = Fraction((n - 2) * (x - mean) ** 2 + 2 * (x + mean) ** 2, n - 1)
    assert alone(protocol) == {"sum of x": (n - 4) * x, "variance of x": float(spread), "rows with x": n}


def compare_with_exact_coefficients(alone: Alone, cells: list[tuple[int, ...]]) -> None:
    names = tuple("xyz"[: len(cells[0])])
    plan = SharePlan(regression=(names,), bounds=BOUNDS, at_least=1)
    (found,) = computed(alone, plan, cells)[0].values()
    exact = least_squares(cells)
    if exact is None:
        assert found is None
        return
    for told, true in zip(found.values(), exact, strict=True):
        # Cut off after eight digits, and a float.
        assert abs(Fraction(told)) <= abs(true) * (1 + Fraction(1, 10**12))
        assert abs(true - Fraction(told)) <= max(abs(true) * Fraction(11, 10**8), Fraction(1, 10**12))


@pytest.mark.long
def test_coefficients_are_those_of_exact_equations(alone: Alone) -> None:
    compare_with_exact_coefficients(alone, [(2000, 1, 0), (-2000, 2, 0), (7, 3, 1), (9, -40, 2)])


@settings(max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.tuples(numbers, numbers), min_size=2, max_size=6))
@example(cells=[(LIMIT, -LIMIT), (-LIMIT, 1 - LIMIT)])  # the largest coefficients
def test_a_coefficient_is_that_of_exact_equations(cells: list[tuple[int, int]], alone: Alone) -> None:
    compare_with_exact_coefficients(alone, [*cells])


def least_squares(cells: list[tuple[int, ...]]) -> list[Fraction] | None:
    """Solve the normal equations with fractions: elimination, where the protocol has Cramer's rule."""
    rows = [(1, *others) for _, *others in cells]
    k = len(rows[0])
    matrix = [
        [Fraction(sum(row[i] * row[j] for row in rows)) for j in range(k)]
        + [Fraction(sum(row[i] * cell[0] for row, cell in zip(rows, cells, strict=True)))]
        for i in range(k)
    ]
    for i in range(k):
        pivot = next((row for row in matrix[i:] if row[i]), None)
        if pivot is None:
            return None
        matrix.remove(pivot)
        matrix.insert(i, [entry / pivot[i] for entry in pivot])
        for j in range(k):
            if j != i:
                matrix[j] = [a - matrix[j][i] * b for a, b in zip(matrix[j], matrix[i], strict=True)]
    return [row[k] for row in matrix]


def test_a_coefficient_that_is_too_large_is_refused(alone: Alone) -> None:
    async def protocol(runtime: Any) -> Any:
        secint = runtime.SecInt(140)
        return await protocols._digits(runtime, [secint(-(10**24))], secint(1))

    with pytest.raises(InfeasibleError, match="more than 24 digits"):
        alone(protocol)


# ── what is opened ──────────────────────────────────────────────────────────────────────────────────────────────


def test_sums_open_themselves(alone: Alone) -> None:
    plan = SharePlan(count=True, mean=("x",), at_least=1)
    assert computed(alone, plan, [(3,), (4,), (-9,)])[1] == [3, -2, 3]


def test_a_variance_opens_neither_sum_nor_squares(alone: Alone) -> None:
    plan = SharePlan(variance=("x",), at_least=1)
    assert computed(alone, plan, [(3,), (4,), (-9,)])[1] == [3, 3 * (9 + 16 + 81) - 4]


@few
@given(values=st.lists(st.integers(-50, 50), min_size=1, max_size=9), more=st.integers(2, 4))
def test_the_way_to_an_order_statistic_follows_from_it(values: list[int], more: int, alone: Alone) -> None:
    """Other rows with the same answer open the same bits."""
    plan = SharePlan(quantile=(("x", "0.5"),), minimum=("x",), bounds={"x": ("-50", "50")}, at_least=1)
    least, middle = min(values), plain_quantile(values, Fraction(1, 2))
    other = [least, *[middle] * more, 50]
    seen = computed(alone, plan, [(value,) for value in values]), computed(alone, plan, [(value,) for value in other])
    assert seen[0] == seen[1]


def test_the_way_to_coefficients_follows_from_them(alone: Alone) -> None:
    plan = SharePlan(regression=(("x", "y"),), bounds=BOUNDS, at_least=1)
    line = [(3 * y - 7, y) for y in (1, 2, 5)]
    other = [(3 * y - 7, y) for y in (-40, 11, 300, 600)]
    first, second = computed(alone, plan, line), computed(alone, plan, other)
    assert first == second
    assert first[0] == {"regression of x on y": {"intercept": -7.0, "y": 3.0}}
    assert {*first[1]} == {0, 1}


@pytest.mark.parametrize(
    "cells", [[(5, 44, 9)], [(1, 2, 4), (5, 3, 6), (8, 9, 18)], []], ids=["one row", "twice", "none"]
)
def test_predictors_that_depend_on_each_other_open_only_that(cells: list[tuple[int, ...]], alone: Alone) -> None:
    """A masked matrix would tell how: for a single row, the row itself."""
    plan = SharePlan(regression=(("x", "y", "z"),), bounds=BOUNDS, at_least=1)
    assert computed(alone, plan, cells) == ({"regression of x on y, z": None}, [0])


def test_without_a_value_there_is_no_order_statistic(alone: Alone) -> None:
    plan = SharePlan(minimum=("x",), quantile=(("y", "0.5"),), bounds=BOUNDS, at_least=1)
    figures, opened = computed(alone, plan, [])
    assert figures == {"minimum of x": None, "quantile 0.5 of y": None}
    assert opened == [0, 0]


def test_too_few_rows_open_one_bit(alone: Alone) -> None:
    plan = SharePlan(count=True, sum=("x",))
    assert plan.min_rows_opened == 10
    with pytest.raises(InfeasibleError, match="fewer than 10 rows"):
        computed(alone, plan, [(1,)] * 9)
    assert computed(alone, plan, [(1,)] * 10)[1] == [1, 10, 10]
