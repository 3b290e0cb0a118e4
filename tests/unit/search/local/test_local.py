"""Local recoding: its prices and loops against plain twins, and what it promises on tables that are not tiny."""

import importlib
import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from shoal.errors import OutOfTimeError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.intervals import Intervals
from shoal.models.closeness import TCloseness
from shoal.models.diversity import DistinctDiversity
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cells.classes import Partition, passing, released
from shoal.search.full_domain.optimal import optimal
from shoal.search.local import boxes as local_boxes
from shoal.search.local import kernels as local_kernels
from shoal.search.local.boxes import Space
from shoal.search.local.node_cover import first_cover
from shoal.search.local.scratch import Run
from shoal.search.local.steps import improve
from shoal.search.losses.cells import loss_of, prices
from shoal.search.problem import Terms, silent
from shoal.tables.frequency import Domain, count_records
from shoal.tables.values import Vocabulary, covering

local = importlib.import_module("shoal.search.local.local")  # the package has a function of this name
CELLS = ("loss", "arx-loss", "precision", "height", "entropy")


def hierarchies() -> tuple[Hierarchy, ...]:
    """Decades of numbers, a tree whose ground joins two leaves, and one that is only told or not."""
    numbers = [(str(i), f"{i // 5 * 5}+", f"{i // 10 * 10}s", "*") for i in range(30)]
    tree = [("p", "P", "*"), ("q", "P", "*"), ("r", "R", "*"), ("s", "R", "*"), ("t", "T", "*")]
    levels = [[*(path[level] for path in tree), top] for level, top in enumerate("tT*")]  # u joins t on the ground
    joined = Hierarchy.from_levels("b", [*(path[0] for path in tree), "u"], levels)
    told = Hierarchy.from_paths("c", [("x", "*"), ("y", "*")])
    return Hierarchy.from_paths("a", numbers, leaf_order="numeric"), joined, told


def table_of(n: int, seed: int = 0, *, values: int = 0):
    rng = np.random.default_rng(seed)
    known = hierarchies()
    codes = np.column_stack([rng.integers(0, len(h.leaves), n) for h in known]).astype(np.int32)
    codes[: n // 4] = codes[0]  # a tuple that many share
    sensitive = {}
    if values:
        of = rng.integers(0, values, n).astype(np.int32)
        sensitive = {Domain("s", tuple(map(str, range(values))), np.bincount(of, minlength=values)): of}
    return count_records(("a", "b", "c"), codes, sensitive, None, known, separately=True)[0]


def problem_of(n: int, k: int = 3, *models, values: int = 0, seed: int = 0, progress=silent, **terms) -> Problem:
    return Problem(table_of(n, seed, values=values), (KAnonymity(k=k), *models), Terms(**terms), progress=progress)


def loss(problem: Problem, answer) -> float:
    return loss_of(problem, answer.released, answer.parts(problem.table), problem.objective_name)


@pytest.mark.parametrize("small", [512, 0])
@pytest.mark.parametrize("name", CELLS)
def test_a_box_costs_what_its_cells_will(monkeypatch, name, small):
    monkeypatch.setattr(local_boxes, "SMALL", small)
    problem = problem_of(200, objective=name, weights=(1, 2, 3))
    space = Space(problem)
    class_of = np.random.default_rng(1).integers(0, 40, problem.table.n_classes)
    partition = Partition.of_rows(problem.table, class_of)
    search = local._LocalSearch(problem, space, partition)
    weights = space.weights(None)
    local_kernels.rebox_all(space.boxes(weights), search.atoms, search.classes)
    for c in range(partition.n_classes):
        mine = problem.table.codes[partition.row[partition.class_of == c]]
        expected = 0.0
        for j, hierarchy in enumerate(problem.table.hierarchies):
            vocabulary = Vocabulary(hierarchy)
            priced = prices(problem.table, j, vocabulary.values, name)
            ground = priced[vocabulary.nodes[0]].min()
            expected += weights[j] * (priced[covering(vocabulary, mine[:, j], np.array([0]))[0]] - ground)
        assert search.classes.cost[c + 1] == pytest.approx(expected, abs=1e-6)
    answer = local.Solution.of(problem, partition)
    assert search.loss == pytest.approx(answer.loss, rel=1e-9)


def test_ranges_cost_what_they_are_written_as():
    problem = problem_of(150, cells=("tight-range", "hierarchy", "hierarchy"))
    space = Space(problem)
    vocabulary = Vocabulary(problem.table.hierarchies[0], "tight-range")
    for low in range(30):
        for high in range(low, 30):
            (value,) = covering(vocabulary, np.arange(low, high + 1, dtype=np.int32), np.array([0]))
            assert space.columns[0].pairs[low, high] == pytest.approx(vocabulary.selected([value]).shares[0], abs=1e-9)


@pytest.mark.parametrize("name", ["loss", "arx-loss"])
@pytest.mark.parametrize("cells", [("tight-set", "tight-set", "tight-set"), ("tight-range", "tight-set", "hierarchy")])
def test_sets_cost_what_they_are_written_as(name, cells):
    numbers, joined, _ = hierarchies()
    told = Hierarchy.from_paths("c", [("x", "xy", "*"), ("y", "xy", "*"), ("w", "wz", "*"), ("z", "wz", "*")])
    known = (numbers, joined.with_null(), told.with_uncovered().with_null())
    rng = np.random.default_rng(2)
    codes = np.column_stack([rng.integers(0, len(h.leaves), 300) for h in known]).astype(np.int32)
    codes[:, 2] = np.where(rng.random(300) < 0.6, 0, codes[:, 2])
    table = count_records(("a", "b", "c"), codes, {}, None, known, separately=True)[0]
    problem = Problem(table, (KAnonymity(k=2),), Terms(objective=name, cells=cells, weights=(1, 2, 3)))
    space = Space(problem)
    partition = Partition.of_rows(table, rng.integers(0, 90, table.n_classes))
    search = local._LocalSearch(problem, space, partition)
    weights = space.weights(None)
    local_kernels.rebox_all(space.boxes(weights), search.atoms, search.classes)
    vocabularies = [Vocabulary(hierarchy, of) for hierarchy, of in zip(known, cells, strict=True)]
    seen = set()
    for c in range(partition.n_classes):
        mine = table.codes[partition.row[partition.class_of == c]]
        expected = 0.0
        for j, vocabulary in enumerate(vocabularies):
            (value,) = covering(vocabulary, mine[:, j], np.array([0]))
            price = prices(table, j, vocabulary.values, name)
            expected += weights[j] * (price[value] - price[vocabulary.nodes[0]].min())
            seen.add((j, value == vocabulary.TOP_ID, len(set(mine[:, j].tolist())) > 1))
        assert search.classes.cost[c + 1] == pytest.approx(expected, abs=1e-6)
    assert len(seen & {(1, True, True), (1, False, True), (1, False, False)}) == 3  # with a null in it, and without
    answer = local.Solution.of(problem, partition)
    assert search.loss == pytest.approx(answer.loss, rel=1e-9)


def test_numbers_that_cost_what_they_span_do_so_as_sets():
    numbers = Hierarchy.from_paths("a", [(str(i * i), "*") for i in range(9)], leaf_order="numeric")
    numbers = replace(numbers, share_of="range")
    codes = np.arange(9, dtype=np.int32)[:, None].repeat(2, axis=0)
    table = count_records(("a",), codes, {}, None, (numbers,), separately=True)[0]
    problem = Problem(table, (KAnonymity(k=4),), Terms(cells=("tight-set",)))
    column = Space(problem).columns[0]
    assert column.pairs is not None
    vocabulary = Vocabulary(numbers, "tight-set")
    for low in range(9):
        for high in range(low + 1, 9):
            (value,) = covering(vocabulary, np.array([low, high], np.int32), np.array([0]))
            assert column.pairs[low, high] == pytest.approx(vocabulary.selected([value]).shares[0], abs=1e-9)


@pytest.mark.parametrize(("m", "most"), [(1024, 1.0), (50, 1.1)])
def test_the_nearest_are_nearest_or_nearly(monkeypatch, m, most):
    problem = problem_of(400)
    space = Space(problem)
    boxes = space.boxes(space.weights(None))
    if m < len(space.codes):  # as a large table
        monkeypatch.setattr(local_boxes, "MAX_ALL_PAIRS", m)
    _, away = space.neighbours(boxes, np.random.default_rng(0), 8)
    column = space.columns
    pairs = sum(
        w * (c.pairs[np.minimum.outer(x, x), np.maximum.outer(x, x)] - c.pairs.min())
        for w, c, x in zip(space.weights(None), column, space.codes.T, strict=True)
    )
    np.fill_diagonal(pairs, np.inf)
    exact = np.sort(pairs, axis=1)[:, :8]
    assert away.sum() <= most * exact.sum() + 1e-4
    assert (away >= exact - 1e-6).all()


@pytest.mark.parametrize("k", [3, 40])  # of 40 no two classes are taken apart at once
@pytest.mark.parametrize("hot", [0.0, 0.5])
def test_steps_keep_the_books(hot, k):
    problem = problem_of(300 if k == 3 else 600, k, limit=10)
    space = Space(problem)
    start = local.first_answer(problem).partition
    search = local._LocalSearch(problem, space, start)
    search._split(1)
    atoms, classes = search.atoms, search.classes
    temperatures = (hot, hot / 2)
    run = Run(k, problem.limit, 0, 3_000, *temperatures, n_ruined=3, verify=False, wishes=0.5)
    improve(search.boxes, atoms, classes, search.logs[0], run, 7)
    for c in range(len(classes.first)):
        members = np.flatnonzero(classes.class_of == c)
        listed = []
        a = classes.first[c]
        while a >= 0:
            listed.append(a)
            a = classes.after[a]
        assert sorted(listed) == members.tolist()
        assert classes.n_atoms[c] == len(members)
        assert classes.n_records[c] == atoms.weights[members].sum()
        if c != local_kernels.STARS:
            assert not len(members) or classes.n_records[c] >= k
    before = classes.cost.copy()
    local_kernels.rebox_all(search.boxes, atoms, classes)
    used = (classes.n_atoms > 0) & (classes.n_atoms < local_kernels.SHRINKS)
    assert classes.cost[used] == pytest.approx(before[used], abs=1e-9)
    assert search.partition.n_suppressed <= 10


def test_a_tuple_with_many_records_lends_no_more_than_it_can_spare():
    known = hierarchies()
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, len(h.leaves), 40) for h in known]).astype(np.int32)
    codes = np.concatenate([np.repeat(codes[:12], 9, axis=0), codes])
    problem = Problem(count_records(("a", "b", "c"), codes, {}, None, known)[0], (KAnonymity(k=4),))
    space = Space(problem)
    search = local._LocalSearch(problem, space, local.first_answer(problem).partition)
    search._split(1)
    assert (search.atoms.weights >= 4).sum() > 5
    run = Run(4, limit=0, side=0, n_steps=500, hot=1.0, cold=1.0, n_ruined=3, verify=False, wishes=0.5)
    for seed in range(20):
        improve(search.boxes, search.atoms, search.classes, search.logs[0], run, seed)
        sizes = search.classes.n_records
        assert (sizes[sizes > 0] >= 4).all()


def test_what_is_undone_is_as_it_was():
    problem = problem_of(200)
    space = Space(problem)
    search = local._LocalSearch(problem, space, local.first_answer(problem).partition)
    sides = search._split(1)
    before = {name: of.copy() for name, of in search.classes._asdict().items()}
    log = search.logs[0]
    run = Run(3, limit=0, side=0, n_steps=2_000, hot=0.0, cold=search.total, n_ruined=3, verify=True, wishes=0.5)
    _, n = improve(search.boxes, search.atoms, search.classes, log, run, 1)
    assert n > 0
    assert (search.classes.class_of != before["class_of"]).any()
    local_kernels.settle(search.atoms, search.classes, log, log.ends[:n], np.ones(n, np.bool_))
    search.classes.side[:] = sides
    for name in ("class_of", "n_atoms", "n_records", "side"):
        assert (getattr(search.classes, name) == before[name]).all()
    used = before["n_atoms"] > 0
    assert (search.classes.cost[used] == before["cost"][used]).all()
    assert (search.classes.box[used] == before["box"][used]).all()


@pytest.mark.parametrize("objective", ["loss", "arx-loss", "entropy", "discernibility"])
def test_it_loses_less_than_what_it_starts_from(objective):
    problem = problem_of(400, 4, objective=objective)
    answer = SEARCHES["local"](problem)
    starts = [loss(problem, SEARCHES["mondrian_relaxed"](problem)), local.first_answer(problem).loss]
    found = loss(problem, answer)
    assert found <= min(starts) if objective == "discernibility" else found < min(starts)
    assert not answer.proved
    if objective == "discernibility":
        assert answer.bound is None
    else:
        assert answer.bound < found
    assert ("mean cell loss" in answer.claim) == (objective == "arx-loss")


def test_a_search_with_little_time_cools_down_in_what_the_start_has_left(monkeypatch):
    problem = problem_of(200, time_budget=60)
    whole = Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64))
    search = local._LocalSearch(problem, Space(problem), whole)
    search._seconds, search._for_steps = 20, 18  # of 60: the start took the others
    shares = []
    for left in (20, 11, 2):
        monkeypatch.setattr(Problem, "seconds_left", left)
        shares.append(search._share(10_000))
    assert shares == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("cells", ["range", "set", "tight-range", "tight-set"])
def test_cells_are_written_as_the_policy_says(cells):
    problem = problem_of(300, cells=(cells, cells, "hierarchy"))
    answer = SEARCHES["local"](problem)
    for dimension in ("range", "entropy", "gain"):
        split = problem_of(300, cells=problem.cells, dimension=dimension)
        assert loss(problem, answer) < loss(split, SEARCHES["mondrian_relaxed"](split))
    texts = {str(answer.released[0].labels[code]) for code in answer.parts(problem.table).codes[:, 0].tolist()}
    assert any(("-" if cells.endswith("range") else "{") in text for text in texts)
    assert answer.bound <= loss(problem, answer)


@pytest.mark.parametrize("model", [DistinctDiversity(l=3), TCloseness(t=0.35)])
def test_classes_pass_whatever_is_asked(model):
    problem = problem_of(300, 3, model, values=4, limit=5)
    answer = SEARCHES["local"](problem)
    assert passing(problem, released(problem, answer)).all()
    start = local.best_start(problem, Space(problem), local.first_answer(problem))
    assert loss(problem, answer) < start.loss
    assert answer.parts(problem.table).n_suppressed <= 5


def test_suppressed_records_that_stay_pass_as_a_class():
    problem = problem_of(200, 3, DistinctDiversity(l=3), values=4, limit=20, keep_suppressed=True)
    assert passing(problem, released(problem, SEARCHES["local"](problem))).all()


def test_two_threads_give_one_answer(monkeypatch):
    monkeypatch.setattr(local, "STEPS", 1)
    problem = problem_of(6_000)
    one, other = (SEARCHES["local"](problem).parts(problem.table) for _ in range(2))
    assert (one.row == other.row).all()
    assert (one.codes == other.codes).all()
    assert (one.counts == other.counts).all()


def test_another_seed_is_another_search():
    answers = [SEARCHES["local"](problem_of(400, 4, seed=0)).became.codes]
    problem = Problem(table_of(400), (KAnonymity(k=4),), Terms(seed=1))
    answers.append(SEARCHES["local"](problem).became.codes)
    assert answers[0].shape != answers[1].shape or (answers[0] != answers[1]).any()


def test_no_time_is_enough_for_the_start():
    problem = problem_of(400, time_budget=1e-6)
    answer = SEARCHES["local"](problem)
    assert passing(problem, released(problem, answer)).all()
    assert answer.bound is None


@pytest.fixture
def ticking(monkeypatch):
    """A clock that each look at it moves on: as many looks fit into a budget on any machine."""
    clock = SimpleNamespace(monotonic=itertools.count(0, 0.03).__next__)
    monkeypatch.setattr("shoal.search.problem.time", clock)


@pytest.mark.usefixtures("ticking")
def test_a_time_budget_ends_it():
    steps = []
    for seconds in (4.25, 4.5):
        seen = []
        problem = problem_of(
            400, 4, time_budget=seconds, progress=lambda what, share, seen=seen: seen.append((what, share))
        )
        steps.append(SEARCHES["local"](problem).n_evaluated)
        assert any(what.startswith("loss ") for what, _ in seen)
        assert all(0 <= share <= 1 for _, share in seen)
    assert 0 < steps[0] < steps[1]


def test_no_other_start_begins_without_the_time_that_the_first_one_took(monkeypatch):
    problem = problem_of(300, time_budget=60)
    first, space = local.first_answer(problem), Space(problem)
    begun = []

    def noted(problem):
        begun.append("the lattice")
        return optimal(problem)

    monkeypatch.setattr("shoal.search.local.start.optimal", noted)
    assert local.best_start(problem, space, first, took=600) is first
    assert not begun
    local.best_start(problem, space, first, took=0.001)
    assert begun


def test_neighbours_are_looked_for_in_their_part_of_the_time(monkeypatch):
    monkeypatch.setattr(local_boxes, "MAX_ALL_PAIRS", 50)  # as a large table
    problem = problem_of(400, 4, time_budget=60)
    space = Space(problem)
    boxes = space.boxes(space.weights(None))
    near, away = space.neighbours(boxes, np.random.default_rng(0), 8, problem.given(-1))
    assert (near < 0).all()
    assert np.isinf(away).all()
    assert (space.neighbours(boxes, np.random.default_rng(0), 8, problem)[0] >= 0).all()
    monkeypatch.setattr(local, "FOR_NEAR", -1.0)  # the steps have to do without
    short = problem_of(400, 4, time_budget=0.5)
    start = local.first_answer(short)
    search = local._LocalSearch(short, space, start.partition)
    search.run()
    found = local.Solution.of(problem, search.partition)
    assert found.holds
    assert found.loss <= start.loss


def test_however_little_time_there_is_mondrian_by_gain_is_finished():
    problem = problem_of(400, time_budget=1e-6)
    split = problem_of(400, dimension="gain")
    answer = SEARCHES["local"](problem)
    assert loss(problem, answer) == loss(split, SEARCHES["mondrian"](split)) < 0.5
    assert answer.unfinished == "the time budget of 1e-06 seconds ended before the first of the planned steps"


@pytest.mark.usefixtures("ticking")
def test_a_start_that_takes_long_leaves_time_for_the_steps(monkeypatch):
    """A start that looks at the clock all the time may use up a third of it, and no more."""
    looks = []

    def looks_for_ever(problem, **_):
        while not problem.out_of_time:
            looks.append(problem.seconds_left)
        raise OutOfTimeError("late", "")

    monkeypatch.setattr("shoal.search.local.start.mondrian_relaxed", looks_for_ever)
    problem = problem_of(400, 4, time_budget=60)
    answer = SEARCHES["local"](problem)
    assert looks
    assert looks[0] < 20  # a third of sixty
    assert answer.n_evaluated > 0
    assert loss(problem, answer) <= loss(problem, SEARCHES["mondrian"](problem_of(400, 4, dimension="gain")))


@pytest.mark.usefixtures("ticking")
def test_it_tells_after_how_many_of_the_planned_steps_the_time_ended(monkeypatch):
    monkeypatch.setattr(local, "STEPS", 1_200)
    problem = problem_of(400, 4, time_budget=4)
    answer = SEARCHES["local"](problem)
    start = local.first_answer(problem)
    planned = local._LocalSearch(problem, Space(problem), start.partition).n_planned
    percent = int(100 * answer.n_evaluated / planned)
    assert 0 < percent < 100
    assert f"the time budget of 4 seconds ended after {percent} % of the planned steps" in answer.unfinished


def test_without_a_budget_nothing_is_unfinished_and_no_clock_is_read(monkeypatch):
    problem = problem_of(400, 4)
    monkeypatch.setattr("shoal.search.problem.time", None)
    assert SEARCHES["local"](problem).unfinished == ""


@pytest.mark.parametrize("limit", [0, 20])
def test_it_is_never_worse_than_what_it_may_start_from(monkeypatch, limit):
    monkeypatch.setattr(local, "FEWEST", 1)
    monkeypatch.setattr(local, "STEPS", 0)
    for seed in range(5):
        problem = problem_of(120, 4, seed=seed, limit=limit)
        by_gain = problem_of(120, 4, seed=seed, limit=limit, dimension="gain")
        others = [loss(by_gain, SEARCHES[name](by_gain)) for name in ("optimal", "mondrian", "mondrian_relaxed")]
        assert loss(problem, SEARCHES["local"](problem)) <= min(others) + 1e-12


def test_a_lattice_with_too_much_work_is_not_searched_for_its_optimum(monkeypatch):
    def refuse(problem):
        raise AssertionError("looked for the optimum")

    monkeypatch.setattr("shoal.search.local.start.optimal", refuse)
    monkeypatch.setattr("shoal.search.local.start.WORK", 5)
    SEARCHES["local"](problem_of(100))


def test_a_lattice_too_large_is_not_covered(monkeypatch):
    problem = problem_of(100, 3, DistinctDiversity(l=3), values=4)
    monkeypatch.setattr("shoal.search.local.node_cover.MAX_NODES", 5)
    assert first_cover(problem, Space(problem)) is None
    assert loss(problem, SEARCHES["local"](problem)) <= loss(problem, SEARCHES["mondrian_relaxed"](problem))


def test_a_cover_of_a_part_of_the_lattice_passes_too(monkeypatch):
    problem = problem_of(300, 3, TCloseness(t=0.3), values=4)
    monkeypatch.setattr("shoal.search.local.node_cover.MAX_JUDGED", 7)
    partition = first_cover(problem, Space(problem))
    assert passing(problem, partition.classes(problem.table)).all()
    assert partition.n_classes > 1


def test_ranges_of_many_values_are_priced_in_runs_of_adjacent_ones(monkeypatch):
    monkeypatch.setattr(local_boxes, "SMALL", 8)
    problem = problem_of(300, cells=("tight-range", "hierarchy", "hierarchy"))
    column = local_boxes.ColumnPrices.of(problem, 0, type(problem.objective))
    assert column.pairs.shape == (8, 8)
    assert (np.diff(column.ranks) >= 0).all()
    widest = np.bincount(column.ranks).max()
    for low, high in itertools.combinations(range(30), 2):
        exact, priced = (high - low) / 29, column.pairs[column.ranks[low], column.ranks[high]]
        assert abs(priced - exact) <= 2 * widest / 29


def test_steps_gain_on_columns_of_many_decimals():
    rng = np.random.default_rng(2)
    texts = [f"{i / 100:.2f}" for i in range(800)]
    known = tuple(Intervals.model_validate({"intervals": [1, 4]}).build(name, texts) for name in "abc")
    codes = np.column_stack([rng.permutation(800) for _ in known]).astype(np.int32)
    table = count_records(("a", "b", "c"), codes, {}, None, known, separately=True)[0]
    problem = Problem(table, (KAnonymity(k=4),), Terms(cells=("range",) * 3))
    assert len(known[0].leaves) > local_boxes.SMALL
    start = local.best_start(problem, Space(problem), local.first_answer(problem))
    answer = SEARCHES["local"](problem)
    assert loss(problem, answer) < 0.75 * start.loss
    assert answer.bound <= loss(problem, answer)


def test_nulls_among_many_values_stay_alone_in_runs():
    plain = hierarchies()[0]
    for hierarchy, n_hidden in ((plain, 0), (plain.with_null(), 1), (plain.with_null().with_uncovered(), 2)):
        ranks, groups = local_boxes._in_runs(hierarchy, 8)
        assert len(groups) == 8
        assert sorted(np.concatenate(groups).tolist()) == list(range(len(hierarchy.leaves)))
        assert all((ranks[leaves] == rank).all() for rank, leaves in enumerate(groups))
        hidden = [leaf for leaf, text in enumerate(hierarchy.leaves) if text is None or leaf == hierarchy.uncovered]
        assert sorted(int(groups[ranks[leaf]][0]) for leaf in hidden) == hidden
        assert len(hidden) == n_hidden
        assert all(len(groups[ranks[leaf]]) == 1 for leaf in hidden)
