"""If these fail, a wrong model, loss, search or attack could be added and nobody would notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pytest
from pydantic import Field

import shoal
from contract import WITHIN_A_PART
from examples import THOROUGH
from shoal.attacks.risk import Risk
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.masking import microaggregate
from shoal.masking.masking import Method, Value
from shoal.models.base import Merging, Passing, PrivacyModel, Scores, SensitiveModel
from shoal.models.size import KAnonymity
from shoal.policy.explain import MODELS
from shoal.recoding import FullDomain, Recoding
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.losses.definitions import LOSSES, WITH_LABEL, Discernibility, IyengarLoss, PrecisionLoss
from shoal.search.losses.lattice import LossClasses
from shoal.search.problem import Evaluation
from shoal.tables.frequency import Counts, Floats, FrequencyTable, Histogram, RowNumbers
from shoal.testing import LawError, check_attack, check_loss, check_mask, check_model, check_search

TIMES = 8 if THOROUGH else 1


@pytest.mark.parametrize("model", MODELS)
def test_every_registered_model_obeys_the_laws(model: type[PrivacyModel]) -> None:
    check_model(model, tables=30 * TIMES)


@pytest.mark.parametrize("name", [*LOSSES, *WITH_LABEL])
def test_every_registered_loss_obeys_the_laws(name: str) -> None:
    check_loss({**LOSSES, **WITH_LABEL}[name], tables=20 * TIMES)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_registered_search_obeys_the_laws(name: str) -> None:
    check_search(SEARCHES[name], tables=20 * TIMES, parting=name in PARTING, may_miss=name in WITHIN_A_PART)


def test_every_attack_obeys_the_laws() -> None:
    roles = {"quasi": ["a", "b"], "sensitive": ["s"]}
    check_attack(lambda release, original: shoal.attack(release, original=original, **roles), tables=3 * TIMES)


@pytest.mark.parametrize("value", [value for value in get_args(Value) if value != "range"])  # whose cells are texts
@pytest.mark.parametrize("method", get_args(Method))
def test_every_mask_obeys_the_laws(method: Method, value: Value) -> None:
    check_mask(
        lambda table, k: microaggregate(table, ["x", "y"], k=k, method=method, value=value).table,
        separately=method == "univariate",
        tables=5 * TIMES,
    )


# ── wrong models ────────────────────────────────────────────────────────────────────────────────────────────


class _Planted(PrivacyModel):
    """A model of class sizes, of which each wrong one changes a part."""

    model: Literal["planted"] = "planted"
    k: int = Field(ge=1)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "planted"
    lowest_is_worst: ClassVar[bool] = True

    def scores(self, table: FrequencyTable) -> Scores:
        return table.counts.astype(float)

    def passes(self, table: FrequencyTable) -> Passing:
        return table.counts >= self.k

    @property
    def summary(self) -> str:
        return "planted"


class AtMostAsManyAbsorbing(_Planted):
    """A class may be too large, so a merge can make it fail."""

    def passes(self, table: FrequencyTable) -> Passing:
        return table.counts <= 3 * self.k


class OddConvex(_Planted):
    """Says that unions pass although two odd numbers are even."""

    merging: ClassVar[Merging] = "convex"

    def passes(self, table: FrequencyTable) -> Passing:
        return table.counts % 2 == 1


class LargestShareAbsorbing(SensitiveModel):
    """A limit on the largest share is convex, not absorbing."""

    model: Literal["planted"] = "planted"
    share: float = Field(gt=0, le=1)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "planted"
    lowest_is_worst: ClassVar[bool] = False

    def score(self, histogram: Histogram) -> Scores:
        sizes = np.add.reduceat(histogram.counts, histogram.starts[:-1])
        return np.asarray(np.maximum.reduceat(histogram.counts, histogram.starts[:-1]) / sizes)

    def accepts(self, histogram: Histogram) -> Passing:
        return np.asarray(self.score(histogram) <= self.share + 1e-12)

    @property
    def summary(self) -> str:
        return "planted"


class LargestShareKeepsTooLittle(LargestShareAbsorbing):
    """Says that hardly any part of a class could pass, so the search prunes what is feasible."""

    merging: ClassVar[Merging] = "convex"

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        return np.add.reduceat(histogram.counts, histogram.starts[:-1])[rows] * self.share / 2


class FirstClass(_Planted):
    """Judges a class by its place."""

    def passes(self, table: FrequencyTable) -> Passing:
        return np.asarray((table.counts >= self.k) | (np.arange(table.n_classes) == 0))


class AgainstTheMean(_Planted):
    """Judges a class by the others of the release, and does not say so."""

    def passes(self, table: FrequencyTable) -> Passing:
        return np.asarray(table.counts * table.n_classes >= table.n_records)


class NeverEnforced(_Planted):
    """Says "table" although no search would ask it for a limit."""

    merging: ClassVar[Merging] = "table"


class BackAndForth(_Planted):
    """A larger k is stricter for some values and weaker for others."""

    def passes(self, table: FrequencyTable) -> Passing:
        return table.counts >= abs(self.k - 3)


class OtherComponents(_Planted):
    """Tells the search of another requirement."""

    def components(self) -> tuple[PrivacyModel, ...]:
        return (KAnonymity(k=self.k + 1),)


class ImpossibleTooSoon(_Planted):
    """Says that suppression cannot be enough where it can."""

    def possible(self, table: FrequencyTable, suppressed: int) -> bool:
        return table.n_classes < 3


class NotANumber(_Planted):
    """Has no score for a class that is large enough."""

    def scores(self, table: FrequencyTable) -> Scores:
        return np.where(table.counts >= self.k, np.nan, 1.0)


WRONG_MODELS = {
    AtMostAsManyAbsorbing: "absorbing",
    OddConvex: "convex",
    LargestShareAbsorbing: "absorbing",
    LargestShareKeepsTooLittle: "max_passing",
    FirstClass: "order of the classes",
    AgainstTheMean: "other classes|absorbing",
    NeverEnforced: "table",
    BackAndForth: "larger k",
    OtherComponents: "components",
    ImpossibleTooSoon: "possible",
    NotANumber: "not a number",
}


@pytest.mark.parametrize("model", WRONG_MODELS)
def test_a_wrong_model_is_caught(model: type[PrivacyModel]) -> None:
    with pytest.raises(LawError, match=WRONG_MODELS[model]):
        check_model(model)


def test_a_right_model_that_nobody_registered_passes() -> None:
    check_model(_Planted, tables=30)


# ── wrong losses ────────────────────────────────────────────────────────────────────────────────────────────


class CheaperAbove(PrecisionLoss):
    """Loses less on higher levels."""

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        return np.asarray(1 - measured / max(1, hierarchy.number_of_top))


class NegativeLoss(IyengarLoss):
    """Is negative."""

    def shown(self, value: float) -> float:
        return value

    def value(self, seen: Evaluation) -> float:
        return super().value(seen) - 2


class BoundTooHigh(Discernibility):
    """Promises a cost for all lower nodes that they do not have."""

    def least_below(self, seen: Evaluation) -> float:
        return 2.0 * self.n * self.n


class SmallClassesCost(Discernibility):
    """Charges small classes, so that generalization gains."""

    def kept_sums(self, classes: LossClasses, *, lower_bound: bool = False) -> Floats:
        return np.asarray(100.0 / classes.counts)


class OtherFigure(Discernibility):
    """Is not finite."""

    def figure(self, sums: Floats, n_suppressed: Counts) -> Floats:
        return np.asarray(sums * np.inf)


@pytest.mark.parametrize("loss", [CheaperAbove, NegativeLoss, BoundTooHigh, SmallClassesCost, OtherFigure])
def test_a_wrong_loss_is_caught(loss: type[IyengarLoss]) -> None:
    with pytest.raises(LawError):
        check_loss(loss)
    assert loss not in LOSSES.values()


# ── wrong searches ──────────────────────────────────────────────────────────────────────────────────────────


def _exhaustive(problem: Problem) -> FullDomain:
    answer = SEARCHES["exhaustive"](problem)
    assert isinstance(answer, FullDomain)
    return answer


def nothing_generalized(problem: Problem) -> Recoding:
    """Releases the table as it is, whatever is required."""
    return replace(_exhaustive(problem), node=problem.lattice.ground, suppressed=np.zeros((0, 1), np.int32))


def top_proved(problem: Problem) -> Recoding:
    """Calls the highest node optimal."""
    seen = problem.evaluate(problem.lattice.top)
    if not seen.feasible:
        raise problem.infeasible()
    return problem.best_node(seen, "top", proved=True)


def gives_up(problem: Problem) -> Recoding:
    """Finds nothing where there is something."""
    raise problem.infeasible()


def spares_no_record(problem: Problem) -> Recoding:
    """Suppresses all that fail on the lowest node, however many."""
    return problem.best_node(problem.evaluate(problem.lattice.ground), "ground", proved=False)


class Alternating:
    """Has two answers to one question."""

    def __init__(self) -> None:
        self.n_calls = 0

    def __call__(self, problem: Problem) -> Recoding:
        self.n_calls += 1
        if self.n_calls % 2:
            return _exhaustive(problem)
        seen = problem.evaluate(problem.lattice.top)
        return problem.best_node(seen, "top", proved=False)


def changes_the_table(problem: Problem) -> Recoding:
    """Counts everybody twice for those who come after."""
    answer = _exhaustive(problem)
    problem.table.counts[:] *= 2
    return answer


WRONG_SEARCHES = [nothing_generalized, top_proved, gives_up, spares_no_record, Alternating(), changes_the_table]


@pytest.mark.parametrize("search", WRONG_SEARCHES, ids=lambda search: getattr(search, "__name__", "alternating"))
def test_a_wrong_search_is_caught(search: object) -> None:
    with pytest.raises(LawError):
        check_search(search)  # type: ignore[arg-type]


# ── wrong attacks ───────────────────────────────────────────────────────────────────────────────────────────


def _risk(successes: float, attempts: int = 10) -> list[Risk]:
    return [Risk("planted", "linkability", None, attempts, successes, None, None, "A planted risk.")]


def test_a_wrong_attack_is_caught() -> None:
    calls = iter(range(100))
    wrong = {
        "more successes": lambda release, original: _risk(11),
        "two results": lambda release, original: _risk(next(calls) % 3),
        "stars is easier": lambda release, original: _risk(5 if release["a"][0].as_py() == "*" else 1),
        "no sentence": lambda release, original: [replace(_risk(1)[0], sentence=" ")],
    }
    for law, attack in wrong.items():
        with pytest.raises(LawError, match=law):
            check_attack(attack)


# ── wrong masks ─────────────────────────────────────────────────────────────────────────────────────────────


def unmasked(table: pa.Table, k: int) -> pa.Table:
    return table


def rounded(table: pa.Table, k: int) -> pa.Table:
    """Equal records of a fixed width, however few they are."""
    columns = {name: [float(round(x)) for x in table[name].to_pylist()] for name in "xy"}
    return pa.table(columns | {"id": table["id"]})


def one_group_too_far(table: pa.Table, k: int) -> pa.Table:
    return pa.table({name: [max(table[name].to_pylist()) + 1.0] * len(table) for name in "xy"} | {"id": table["id"]})


def blocks_of_rows(table: pa.Table, k: int) -> pa.Table:
    """Groups of neighbouring rows, so that the order of the rows decides."""
    starts = [min(i // k, len(table) // k - 1) * k for i in range(len(table))]
    return pa.table({name: [table[name][i] for i in starts] for name in "xy"} | {"id": table["id"]})


def without_the_last(table: pa.Table, k: int) -> pa.Table:
    return microaggregate(table, ["x", "y"], k=k).table.slice(0, len(table) - 1)


def only_separately(table: pa.Table, k: int) -> pa.Table:
    return microaggregate(table, ["x", "y"], k=k, method="univariate").table


@pytest.mark.parametrize(
    ("mask", "law"),
    [
        (unmasked, "records are equal"),
        (rounded, "records are equal"),
        (one_group_too_far, "outside the range"),
        (blocks_of_rows, "order of the rows|records are equal"),
        (without_the_last, "rows are missing"),
        (only_separately, "records are equal"),
    ],
)
def test_a_wrong_mask_is_caught(mask: Callable[[pa.Table, int], pa.Table], law: str) -> None:
    with pytest.raises(LawError, match=law):
        check_mask(mask)
