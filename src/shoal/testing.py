"""Laws for models, losses, searches, attacks and masks, tried on random small tables: ``check_model(MyModel)``.

A requirement, a loss or a search that breaks one of them gives releases that are not safe or not optimal, although
nothing fails. Each check raises ``LawError`` with the law that is broken and the number of the table that breaks it.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pyarrow as pa
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from shoal.attacks.risk import QUESTIONS, Risk
from shoal.compiled.grouping import group
from shoal.errors import InfeasibleError, PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models import PopulationModel, PrivacyModel, ReleaseModel
from shoal.models.size import KAnonymity
from shoal.policy.explain import MODELS
from shoal.recoding import FullDomain, Recoding
from shoal.search import SEARCHES, Problem
from shoal.search.cells.classes import passing, released
from shoal.search.full_domain.lattice import below
from shoal.search.losses.cells import loss_of
from shoal.search.losses.definitions import LOSSES, WITH_LABEL
from shoal.search.losses.lattice import CellLoss, ClassLoss
from shoal.search.problem import Terms
from shoal.tables.frequency import Codes, Domain, FrequencyTable, Histogram, count_records, packed

# Leaves that share a code on each level: one leaf, a level that changes nothing, a ground level that already joins.
SHAPES = (("01", "00"), ("012", "001", "000"), ("0123", "0011", "0000"), ("0112", "0111", "0000"), ("01", "01", "00"))
WHOLE_NUMBERS = (0, 1, 2, 3, 4, 6)
NUMBERS = (0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 1.0, 1.2, 1.5, 2.0, 3.0)
SENSITIVE = ("s", "u")
SearchFunction = Callable[[Problem], Recoding]
PASSES = 1e-9  # relative rounding error of a loss


class LawError(AssertionError):
    """A model, loss, search, attack or mask breaks a law that the rest of the package relies on."""


@dataclass(frozen=True, eq=False)
class RandomTable:
    """One random table, with a population that its records are some of."""

    rng: random.Random
    table: FrequencyTable  # distinct tuples of leaves
    population: FrequencyTable
    parting: FrequencyTable  # the same with a row for each sensitive value, for searches that part equal records

    @property
    def judged(self) -> FrequencyTable:
        """The table as models see it: with the number of people of the population in each class."""
        people = [
            int(self.population.counts[(self.population.codes == row).all(axis=1)].sum()) for row in self.table.codes
        ]
        return replace(self.table, population=np.array(people, np.int64))

    def problem(
        self,
        models: Sequence[PrivacyModel],
        objective: str | None = None,
        *,
        parting: bool = False,
        plain: bool = False,
    ) -> Problem:
        """Pose a problem with random terms; ``plain``: nothing is kept as stars, and no column waits for another."""
        rng, n_columns = self.rng, len(self.table.columns)
        order = [(0, 1)] if n_columns > 1 and rng.random() < 0.2 and not plain else []
        terms = Terms(
            limit=rng.choice((0, rng.randint(0, self.table.n_records), self.table.n_records)),
            objective=objective or rng.choice(list(LOSSES)),
            label="s",
            keep_suppressed=rng.random() < 0.3 and not plain,
            weights=[rng.choice((0.25, 1.0, 3.0)) for _ in range(n_columns)] if rng.random() < 0.3 else None,
            after=order,
        )
        population = self.population if any(isinstance(model, PopulationModel) for model in models) else None
        return Problem(self.parting if parting else self.table, tuple(models), terms, population=population)


def random_table(seed: str, *, columns: int | None = None, persons: bool | None = None) -> RandomTable:
    """Make a random table: up to 24 records, one to three columns with hierarchies, two sensitive columns."""
    rng = random.Random(seed)
    names = "abc"[: columns or rng.choice((1, 2, 2, 3))]
    hierarchies = tuple(_hierarchy(name, rng.choice(SHAPES)) for name in names)
    n, n_more = rng.randint(1, 24), rng.randint(0, 24)
    codes = np.array(
        [[rng.choice((0, rng.randrange(len(h.leaves)))) for h in hierarchies] for _ in range(n + n_more)], np.int32
    ).reshape(n + n_more, len(names))
    sensitive = dict(_sensitive(rng, name, n) for name in SENSITIVE)
    entities = None
    if (rng.random() < 0.2) if persons is None else persons:
        entities = np.array([rng.randrange(max(1, n // 2)) for _ in range(n)], np.int32)
    mine = codes[:n]
    table, parting = (
        count_records(tuple(names), mine, sensitive, entities, hierarchies, separately=apart)[0]
        for apart in (False, True)
    )
    return RandomTable(rng, table, count_records(tuple(names), codes, {}, None, hierarchies)[0], parting)


def _hierarchy(name: str, shape: Sequence[str]) -> Hierarchy:
    leaves = [f"{name}{i}" for i in range(len(shape[0]))]
    top = len(shape) - 1
    levels = [["*" if level == top else f"{name}{level}{c}" for c in codes] for level, codes in enumerate(shape)]
    return Hierarchy.from_levels(name, leaves, levels)


def _sensitive(rng: random.Random, name: str, n: int) -> tuple[Domain, Codes]:
    m = rng.randint(1, 4)
    drawn = np.array(rng.choices(range(m), (4, 3, 2, 1)[:m], k=n), np.int32)
    present, codes = np.unique(drawn, return_inverse=True)
    tree = np.array([[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]], np.int32)[:, present]
    texts = tuple(("2", "4", "11", "30")[value] for value in present)
    whole = np.bincount(codes).astype(np.int64)
    return Domain(name, texts, whole, np.array([float(text) for text in texts]), tree), codes.astype(np.int32)


# ── models ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_model(model: type[PrivacyModel] | PrivacyModel, *, tables: int = 120) -> None:
    """Check that a privacy model keeps every promise that searches rely on.

    Parameters
    ----------
    model
        The class, whose parameters are then drawn at random within their bounds, or one model with its parameters.
    tables
        How many random tables are tried.

    Raises
    ------
    LawError
        If a verdict depends on the order of classes, or on other classes despite ``class_by_class``; if a union
        of classes fails where ``merging`` says that it passes; if a part of a class passes that is larger than
        ``max_passing``; if a stricter parameter lets more classes pass; or if ``optimal`` and ``exhaustive`` differ.

    Examples
    --------
    >>> from shoal.models.size import KAnonymity
    >>> from shoal.testing import check_model
    >>> check_model(KAnonymity, tables=5)
    """
    kind = model if isinstance(model, type) else type(model)
    directions: dict[str, str] = {}
    for i in range(tables):
        drawn = random_table(f"{kind.__name__} {i}", columns=2 if i % 2 else None)
        chosen = model if isinstance(model, PrivacyModel) else drawn_model(kind, drawn.rng, drawn.table.columns)
        with _told_of(f"{kind.__name__}, table {i}"):
            _check_declaration(chosen)
            if isinstance(chosen, ReleaseModel):
                _check_limit(chosen, drawn)
            else:
                _check_verdicts(chosen, drawn)
                _check_unions(chosen, drawn)
                _check_parts(chosen, drawn.rng)
                _check_stricter(chosen, drawn, directions)
            _check_optimal(chosen, drawn)


def drawn_model(kind: type[PrivacyModel], rng: random.Random, columns: Sequence[str]) -> PrivacyModel:
    """Make a model with random parameters, each within the bounds of its field."""
    for _ in range(200):
        values = {name: _value(name, field, rng, columns) for name, field in kind.model_fields.items()}
        try:
            return kind(**{name: value for name, value in values.items() if value is not None})
        except ValidationError:
            continue  # two parameters that do not fit together
    raise LawError(f"{kind.__name__}: no parameters within the bounds of its fields are accepted")


def _value(name: str, field: FieldInfo, rng: random.Random, columns: Sequence[str]) -> Any:
    if name == "column":
        return rng.choice((None, *SENSITIVE))
    if name == "columns":
        return rng.choice((None, tuple(rng.sample(columns, rng.randint(1, len(columns))))))
    if name == "population":
        return "people.csv"
    options = _options(field)
    return rng.choice(options) if options else None


def _options(field: FieldInfo) -> tuple[Any, ...]:
    """Return values that a field accepts; none if only its default is known."""
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    if get_origin(field.annotation) is Literal:
        return get_args(field.annotation)
    if bool in kinds:
        return (False, True)
    if int in kinds or float in kinds:
        values = WHOLE_NUMBERS if int in kinds and float not in kinds else NUMBERS
        return tuple(value for value in values if _within(value, field.metadata))
    return ()


def _within(value: float, bounds: Iterable[Any]) -> bool:
    return all(
        value >= getattr(bound, "ge", value)
        and value <= getattr(bound, "le", value)
        and value > getattr(bound, "gt", value - 1)
        and value < getattr(bound, "lt", value + 1)
        for bound in bounds
    )


@contextmanager
def _told_of(where: str) -> Iterator[None]:
    try:
        yield
    except LawError as error:
        raise LawError(f"{where}: {error}") from error.__cause__


def _require(law: bool, message: str) -> None:
    if not law:
        raise LawError(message)


def _check_declaration(model: PrivacyModel) -> None:
    _require(
        (model.merging == "table") == isinstance(model, ReleaseModel),
        'merging = "table" is for a ReleaseModel, and only for one: no search enforces it otherwise',
    )
    _require(model.merging in ("absorbing", "convex", "table"), f"merging = {model.merging!r} is unknown")
    _require(bool(model.summary.strip()), "summary is empty")
    _require(type(model).model_validate(model.model_dump()) == model, "the fields do not describe the model")


def _check_verdicts(model: PrivacyModel, drawn: RandomTable) -> None:
    table = drawn.judged
    passes, scores = model.passes(table), np.asarray(model.scores(table))
    _require(passes.shape == scores.shape == (table.n_classes,), "passes and scores have one entry for each class")
    _require(passes.dtype == np.bool_, "passes is an array of truth values")
    _require(not np.isnan(scores).any(), "a score is not a number")
    order = np.array(drawn.rng.sample(range(table.n_classes), table.n_classes), np.int64)
    mixed = table.selected(order)
    _require(bool((model.passes(mixed) == passes[order]).all()), "a verdict depends on the order of the classes")
    _require(np.allclose(model.scores(mixed), scores[order]), "a score depends on the order of the classes")
    if model.class_by_class:
        chosen = order[: drawn.rng.randint(1, len(order))]
        judged = model.passes(table.selected(chosen))
        _require(
            bool((judged == passes[chosen]).all()), "class_by_class: the verdict of a class depends on other classes"
        )
    _require(not passes.all() or model.possible(table, 0), "possible: every class passes, so it is possible")
    parts = [part.passes(table) for part in model.components()]
    _require(bool((np.logical_and.reduce(parts) == passes).all()), "components together are not the model")


def _check_unions(model: PrivacyModel, drawn: RandomTable) -> None:
    """Merge values of a column, as generalization does, and compare the verdicts of classes and of their union."""
    table = drawn.judged
    for _ in range(3):
        codes = table.codes.copy()
        j = drawn.rng.randrange(codes.shape[1])
        codes[codes[:, j] == drawn.rng.choice(codes[:, j]), j] = drawn.rng.choice(codes[:, j])
        class_of, firsts = group(packed(codes))
        union = table.merged(class_of, len(firsts), codes[firsts])
        for part in model.components():
            before, after = part.passes(table), part.passes(union)[class_of]
            if part.merging == "absorbing":
                _require(
                    bool((after | ~before).all()), 'merging = "absorbing", but a passing class fails after a merge'
                )
            elif part.merging == "convex" and part.unions_pass:
                all_pass = np.ones(len(firsts), np.bool_)
                np.logical_and.at(all_pass, class_of, before)
                _require(
                    bool((after | ~all_pass[class_of]).all()),
                    'merging = "convex", but a union of passing classes fails',
                )
        table = union


def _check_parts(model: PrivacyModel, rng: random.Random) -> None:
    """Compare ``max_passing`` with the largest union of passing parts of a class."""
    counts = [rng.randint(0, 3) for _ in range(rng.randint(1, 3))]
    if not any(counts) or not model.class_by_class:
        return
    parts = [part for part in itertools.product(*(range(r + 1) for r in counts)) if any(part)]
    sizes = np.array([sum(part) for part in parts], np.int64)
    sensitive = {name: _parts_histogram(name, parts, rng) for name in SENSITIVE}
    people = np.full(len(parts), rng.randint(1, 2 * sum(counts)), np.int64)
    table = FrequencyTable(("a",), np.arange(len(parts), dtype=np.int32)[:, None], sizes, sensitive, population=people)
    for component in model.components():
        accepted = {part for part, holds in zip(parts, component.passes(table), strict=True) if holds}
        # Parts of one class share its people, so with a population one part stands for any union of them.
        passing = accepted if isinstance(component, PopulationModel) else _unions(accepted, counts)
        largest = max(map(sum, passing), default=0)
        greatest = float(component.max_passing(table, np.array([len(parts) - 1]))[0])
        _require(
            largest <= greatest + 1e-6, f"max_passing says {greatest:g}, but {largest} records of a class can stay"
        )


def _parts_histogram(name: str, parts: Sequence[tuple[int, ...]], rng: random.Random) -> Histogram:
    dense = np.array(parts, np.int64)
    m = dense.shape[1]
    whole = dense[-1] + np.array([rng.choice((0, 1, 2, 5)) for _ in range(m)])
    tree = np.array([range(m), [i // 2 for i in range(m)], [0] * m], np.int32)
    texts = ("2", "4", "11", "30")[:m]
    domain = Domain(name, texts, np.maximum(whole, 1), np.array([float(text) for text in texts]), tree)
    rows, values = np.nonzero(dense)
    starts = np.concatenate([[0], np.cumsum((dense > 0).sum(axis=1))])
    return Histogram(starts, values.astype(np.int32), dense[rows, values], m, domain)


def _unions(parts: Iterable[tuple[int, ...]], counts: Sequence[int]) -> set[tuple[int, ...]]:
    """Return all that can be put together from parts without taking a record twice."""
    pieces = set(parts)
    reached, fresh = set(pieces), set(pieces)
    while fresh:
        sums = {tuple(a + b for a, b in zip(x, y, strict=True)) for x in fresh for y in pieces}
        fresh = {part for part in sums if all(a <= b for a, b in zip(part, counts, strict=True))} - reached
        reached |= fresh
    return reached


def _check_stricter(model: PrivacyModel, drawn: RandomTable, directions: dict[str, str]) -> None:
    """Vary one parameter: as it grows, classes may start to fail or start to pass, but not both."""
    table = drawn.judged
    fields = type(model).model_fields
    for name in fields:
        if not isinstance(getattr(model, name), int | float) or isinstance(getattr(model, name), bool):
            continue
        verdicts = []
        for value in _options(fields[name]):
            try:
                verdicts.append(type(model)(**(model.model_dump() | {name: value})).passes(table))
            except ValidationError:
                continue
        for weaker, stricter in itertools.pairwise(verdicts):
            for changed, direction in ((weaker & ~stricter, "fail"), (stricter & ~weaker, "pass")):
                if changed.any():
                    first_direction = directions.setdefault(name, direction)
                    _require(first_direction == direction, f"a larger {name} makes some classes pass and others fail")


def _check_limit(model: ReleaseModel, drawn: RandomTable) -> None:
    """Check a limit on a whole release: the sum of the excesses says whether the figure is within it."""
    table = drawn.judged
    value, excess = model.value(table), model.excess(table)
    order = np.array(drawn.rng.sample(range(table.n_classes), table.n_classes), np.int64)
    _require(
        bool(np.isclose(model.value(table.selected(order)), value)), "the figure depends on the order of the classes"
    )
    _require(excess.shape == (table.n_classes,), "excess has one entry for each class")
    if abs(value - model.max) > PASSES:
        _require((excess.sum() <= 0) == (value <= model.max), "excess and value disagree about the limit")


def _check_optimal(model: PrivacyModel, drawn: RandomTable) -> None:
    for further in ((), (KAnonymity(k=2),)):
        problem = drawn.problem((model, *further))
        best, pruned = (_answer(problem, name) for name in ("exhaustive", "optimal"))
        _require(
            _plain(problem, best) == _plain(problem, pruned),
            "optimal and exhaustive differ: merging, class_by_class, unions_pass, possible or max_passing is not true",
        )
        if best is not None and problem.people is None and not problem.of_release:
            classes = released(problem, best)
            passing = model.passes(classes)
            _require(bool(passing.all()), "a class that is released does not satisfy the model")


def _answer(problem: Problem, algorithm: str) -> FullDomain | None:
    try:
        answer: Any = SEARCHES[algorithm](problem)
    except InfeasibleError:
        return None
    assert isinstance(answer, FullDomain)
    return answer


def _plain(problem: Problem, answer: FullDomain | None) -> tuple[Any, ...] | None:
    return None if answer is None else (answer.node, frozenset(map(tuple, answer.suppressed.tolist())))


# ── losses ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_loss(loss: type[CellLoss] | type[ClassLoss], *, tables: int = 40) -> None:
    """Check that a loss grows with generalization and that its bounds hold, which is what searches prune by.

    Parameters
    ----------
    loss
        The class, as it would stand in ``LOSSES``.
    tables
        How many random tables are tried.

    Raises
    ------
    LawError
        If a value is negative or not finite, if a coarser node loses less, if a bound is above what a node loses, if
        the loss of the released cells is not that of the node, or if ``optimal`` and ``exhaustive`` differ.

    Examples
    --------
    >>> from shoal.search.losses.definitions import HeightLoss
    >>> from shoal.testing import check_loss
    >>> check_loss(HeightLoss, tables=3)
    """
    with _registered(loss) as name:
        for i in range(tables):
            drawn = random_table(f"{loss.__name__} {i}")
            with _told_of(f"{loss.__name__}, table {i}"):
                _check_growth(drawn, name)
                _check_bounds(drawn, name)
                problem = drawn.problem((KAnonymity(k=drawn.rng.randint(1, 4)),), name)
                best, pruned = (_answer(problem, algorithm) for algorithm in ("exhaustive", "optimal"))
                _require(_plain(problem, best) == _plain(problem, pruned), "optimal and exhaustive differ")
                if best is not None:
                    value = problem.objective.published_figure(problem.objective.value(problem.evaluate(best.node)))
                    cells = loss_of(problem, best.released, best.parts(problem.table), name)
                    _require(_equal(value, cells), "the loss of the released cells is not that of the node")


@contextmanager
def _registered(loss: type[CellLoss] | type[ClassLoss]) -> Iterator[str]:
    """Give the name of a loss, which is in ``LOSSES`` as long as it is checked."""
    name_of_class = {kind: name for name, kind in {**LOSSES, **WITH_LABEL}.items()}
    if loss in name_of_class:
        yield name_of_class[loss]
        return
    name = f"checked {loss.__name__}"
    LOSSES[name] = loss
    try:
        yield name
    finally:
        del LOSSES[name]


def _check_growth(drawn: RandomTable, objective: str) -> None:
    problem = drawn.problem((KAnonymity(k=1),), objective, plain=True)
    values = {node: problem.objective.value(problem.evaluate(node)) for node in problem.lattice}
    for node, value in values.items():
        _require(bool(np.isfinite(value)) and value >= -PASSES, "a loss is negative or not finite")
        coarser = [other for other in values if below(node, other)]
        _require(all(_at_most(value, values[other]) for other in coarser), "a coarser node loses less")


def _check_bounds(drawn: RandomTable, objective: str) -> None:
    problem = drawn.problem((KAnonymity(k=drawn.rng.randint(1, 4)),), objective)
    nodes = {node: problem.evaluate(node) for node in problem.lattice}
    loss = problem.objective
    values = {node: loss.value(evaluated) for node, evaluated in nodes.items()}
    floor = loss.floor()
    for node, evaluated in nodes.items():
        _require(_at_most(_total(floor, node), values[node]), "floor is above what a node loses")
        bounds, above = loss.below(evaluated), loss.above(evaluated)
        for other in (other for other, evaluation in nodes.items() if evaluation.feasible):
            if below(other, node):
                _require(_at_most(_total(bounds, other), values[other]), "below is above what a lower node loses")
            if below(node, other):
                _require(_at_most(above, values[other]), "above is above what a higher node loses")


def _total(costs: Any, node: Sequence[int]) -> float:
    return float(sum(costs[j][level] for j, level in enumerate(node)))


def _at_most(smaller: float, larger: float) -> bool:
    return smaller <= larger + PASSES * max(1.0, abs(larger))


def _equal(first: float, second: float) -> bool:
    return _at_most(first, second) and _at_most(second, first)


# ── searches ────────────────────────────────────────────────────────────────────────────────────────────────


def check_search(search: SearchFunction, *, tables: int = 40, parting: bool = False, may_miss: bool = False) -> None:
    """Check that a search releases only classes that pass, and that what it calls proved is optimal.

    Parameters
    ----------
    search
        The function, from a ``Problem`` to a ``Recoding``.
    tables
        How many random problems are posed.
    parting
        Whether it may put records with equal values into different classes, as the searches in ``PARTING`` may.
    may_miss
        Whether it may find no answer although generalization has one, as a search that only suppresses does.

    Raises
    ------
    LawError
        If a released class fails, if records are lost or too many are suppressed, if the same problem has two answers,
        if the table is changed, if a node is called proved that is not optimal, or if an answer is missed.

    Examples
    --------
    >>> from shoal.search import SEARCHES
    >>> from shoal.testing import check_search
    >>> check_search(SEARCHES["datafly"], tables=3)
    """
    for i in range(tables):
        drawn = random_table(f"search {i}")
        models: list[PrivacyModel] = [KAnonymity(k=drawn.rng.randint(1, 5))]
        if i % 2:
            kinds = [kind for kind in MODELS if not issubclass(kind, PopulationModel | ReleaseModel)]
            models.append(drawn_model(drawn.rng.choice(kinds), drawn.rng, drawn.table.columns))
        problem = drawn.problem(models, drawn.rng.choice(("loss", "discernibility", "precision")), parting=parting)
        with _told_of(f"table {i}"):
            _check_answer(search, drawn, problem, may_miss=may_miss)


def _check_answer(search: SearchFunction, drawn: RandomTable, problem: Problem, *, may_miss: bool) -> None:
    before = problem.table.codes.copy(), problem.table.counts.copy()
    best = _answer(Problem(drawn.table, problem.asked, problem.terms), "exhaustive")
    try:
        answer = search(problem)
    except PolicyError:
        return  # declined
    except InfeasibleError:
        _require(best is None or may_miss, "no answer, but generalization has one")
        return
    unchanged = (problem.table.codes == before[0]).all() and (problem.table.counts == before[1]).all()
    _require(bool(unchanged), "the table was changed")
    parts = answer.parts(problem.table)
    _require(int(parts.counts.sum()) == problem.n_records, "records of the table are lost, or counted twice")
    n_suppressed = int(parts.counts[parts.suppressed].sum())
    _require(n_suppressed <= problem.limit, "more records are suppressed than may be")
    _require(n_suppressed < problem.n_records, "every record is suppressed")
    _require(bool(passing(problem, released(problem, answer)).all()), "a class that is released does not pass")
    again = search(some_copy(problem)).parts(problem.table)
    repeated = np.array_equal(again.codes, parts.codes) and np.array_equal(again.suppressed, parts.suppressed)
    _require(repeated, "the same problem has two answers")
    if isinstance(answer, FullDomain):
        _require(best is not None, "an answer, but no node of the lattice has one")
        value, best_loss = (
            loss_of(problem, solution.released, solution.parts(drawn.table), problem.objective_name)
            for solution in (answer, best)
            if solution is not None
        )
        _require(_at_most(best_loss, value), "a node that loses less than the optimum")
        if answer.proved and not may_miss:
            _require(_at_most(value, best_loss), "an answer is called proved that is not optimal")


def some_copy(problem: Problem) -> Problem:
    """Return the same problem as if it were posed for the first time."""
    return Problem(problem.table, problem.asked, problem.terms)


# ── attacks ─────────────────────────────────────────────────────────────────────────────────────────────────


def check_attack(attack: Callable[[pa.Table, pa.Table], Iterable[Risk]], *, tables: int = 10) -> None:
    """Check that the figures of an attack are possible, repeatable, and lower for a release that shows nothing.

    Parameters
    ----------
    attack
        A function of a release and its original, with the quasi-identifiers ``a`` and ``b`` and the sensitive column
        ``s``, that returns risks.
    tables
        How many random tables are attacked: as they are, and with stars for the quasi-identifiers.

    Raises
    ------
    LawError
        If there are more successes than attempts or than claims, if an interval or the range of a share is impossible,
        if the same attack has two results, or if a release of stars is easier to attack than the original.

    Examples
    --------
    >>> import shoal
    >>> from shoal.testing import check_attack
    >>> roles = {"quasi": ["a", "b"], "sensitive": ["s"]}
    >>> check_attack(lambda release, original: shoal.attack(release, original=original, **roles), tables=1)
    """
    for i in range(tables):
        rng = random.Random(f"attack {i}")
        n = rng.randint(5, 30)
        original = pa.table({name: [f"{name}{rng.randrange(4)}" for _ in range(n)] for name in "abs"})
        stars = pa.table({"a": ["*"] * n, "b": ["*"] * n, "s": original["s"]})
        with _told_of(f"table {i}"):
            raw, again, nothing = (list(attack(table, original)) for table in (original, original, stars))
            _require(_figures(raw) == _figures(again), "the same attack has two results")
            for risk in (*raw, *nothing):
                _check_risk(risk)
            shares = {key: share for key, (share, _) in _figures(raw).items()}
            linked = [risk for risk in nothing if risk.question != "inference"]  # the values of s are still shown
            for key, (share, _) in _figures(linked).items():
                easier = key in shares and share > shares[key] + PASSES
                _require(not easier, f"{key[0]}: a release of stars is easier to attack than the original")


def _figures(risks: Iterable[Risk]) -> Mapping[tuple[str, str | None], tuple[float, tuple[float, float]]]:
    return {(risk.name, risk.column): (risk.share, risk.interval) for risk in risks}


def _check_risk(risk: Risk) -> None:
    name = risk.name
    _require(risk.question in QUESTIONS, f"{name}: the question is none of {', '.join(QUESTIONS)}")
    _require(0 <= risk.successes <= risk.attempts + PASSES, f"{name}: more successes than attempts")
    _require(risk.claims is None or risk.successes <= risk.claims + PASSES, f"{name}: more successes than claims")
    _require(0 <= risk.interval[0] <= risk.interval[1] <= 1, f"{name}: an impossible interval")
    _require(-PASSES <= risk.range[0] <= risk.range[1] <= 1 + PASSES, f"{name}: an impossible range of the share")
    _require(bool(risk.sentence.strip()), f"{name}: no sentence")
    if risk.control is not None:
        _require(0 <= risk.control.share <= 1 + PASSES, f"{name}: an impossible control")


def check_mask(mask: Callable[[pa.Table, int], pa.Table], *, separately: bool = False, tables: int = 20) -> None:
    """Check that a method that changes numbers leaves at least k equal records, and everything else as it was.

    Parameters
    ----------
    mask
        A function of a table with the numbers ``x`` and ``y`` and a number k, that returns the masked table.
    separately
        Whether each column is masked for itself: then at least k records are equal in each, not in both.
    tables
        How many random tables are masked.

    Raises
    ------
    LawError
        If a group is smaller than k, if a row or another column changes, if a number lies outside the range of its
        column, if the order of the rows decides which numbers there are, if the same table is masked in two ways, or if
        the original changes.

    Examples
    --------
    >>> from shoal.masking import microaggregate
    >>> from shoal.testing import check_mask
    >>> check_mask(lambda table, k: microaggregate(table, ["x", "y"], k=k).table, tables=3)
    """
    for i in range(tables):
        rng = random.Random(f"mask {i}")
        n, k = rng.randint(6, 40), rng.randint(1, 5)
        numbers = {name: [rng.randint(0, 12) / 4 for _ in range(n)] for name in "xy"}
        original = pa.table(numbers | {"id": list(range(n))})
        order = pa.array(rng.sample(range(n), n))
        with _told_of(f"table {i}"):
            masked = mask(original, k)
            _require(masked.column_names == ["x", "y", "id"] and masked.num_rows == n, "columns or rows are missing")
            _require(masked["id"].to_pylist() == list(range(n)), "a column that is not masked has changed")
            _require(original["x"].to_pylist() == numbers["x"], "the original has changed")
            for name in "xy":
                values = masked[name].to_pylist()
                inside = min(numbers[name]) - PASSES <= min(values) and max(values) <= max(numbers[name]) + PASSES
                _require(inside, f"column {name!r}: a masked number lies outside the range of the column")
            mixed = mask(original.take(order), k)
            for names in [("x",), ("y",)] if separately else [("x", "y")]:
                smallest = min(_tuples(masked, names).values())
                _require(smallest >= k, f"only {smallest} records are equal in {' and '.join(names)}, not {k}")
                # Of equal records, the order may decide which get which of several masked values.
                equal = _tuples(masked, names) == _tuples(mixed, names)
                _require(equal, "the order of the rows decides which numbers there are")
            _require(mask(original, k).equals(masked), "the same table is masked in two ways")


def _tuples(table: pa.Table, names: Sequence[str]) -> Counter[tuple[float, ...]]:
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))
