"""The contents of a report: figures and released labels, never a record of the input.

About the original it says only how many records share a class, how much each column lost, and, as examples, labels of a
hierarchy that many records share. Distributions of sensitive values are those of the release: that of the original
would disclose, by the difference, the values of the suppressed records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.base import Query
from shoal.errors import PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.judge import as_attackers_see
from shoal.judge.recount import recounted
from shoal.models.closeness import TCloseness, distance
from shoal.notation import codec
from shoal.policy import Policy
from shoal.recoding import FullDomain, Parts
from shoal.report.examples import Example, examples
from shoal.report.fates import Fate, fates, label_threshold, original_tables, per_label, shortened_label
from shoal.search import Problem
from shoal.search.full_domain.lattice import Lattice, Node
from shoal.tables.frequency import Counts, Domain, FrequencyTable, Histogram, packed
from shoal.tables.values import Values

if TYPE_CHECKING:
    from shoal.release import Release

# Limits of the lattice chart: nodes that can be distinguished, and tuples that are regrouped in a few seconds.
MOST_NODES, MOST_WORK = 1_000, 40_000_000
MOST_BOXES = 400
MOST_TICKS = 5
MOST_VALUES = 8  # of a sensitive column; the others are summed up
MOST_CLASSES = 2  # the most skewed ones, per sensitive column
MAX_DISTANCES = 2_000_000_000  # classes times numbers up to which their distances are computed, a few seconds


@dataclass(frozen=True)
class Bin:
    """Classes of about the same size: the share of records in them before and after, and their number."""

    name: str
    before: float
    after: float
    classes: int


@dataclass(frozen=True)
class Worst:
    """The class that decides a requirement."""

    records: int
    labels: tuple[tuple[str, str], ...]  # column and released label; empty where a class could be one person's record


@dataclass(frozen=True)
class LatticeNode:
    """A node of the lattice chart."""

    position: float
    height: int
    state: str  # safe, unsafe, chosen


@dataclass(frozen=True)
class Slice:
    """Nodes that differ from the chosen one in two columns: ``place`` is a level of one, ``height`` of the other."""

    across: str
    up: str
    nodes: tuple[LatticeNode, ...]
    labels: tuple[tuple[str, ...], tuple[str, ...]]  # of each level, one that a crowd shares, else its number


@dataclass(frozen=True)
class Tick:
    """A value on an axis that many people share."""

    at: float
    label: str


@dataclass(frozen=True)
class Rectangle:
    """The classes that lie in one rectangle of two columns."""

    left: float
    right: float
    bottom: float
    top: float
    records: int


@dataclass(frozen=True)
class PartitionPlot:
    """Classes in two columns."""

    across: str
    up: str
    boxes: tuple[Rectangle, ...]
    hidden: int  # rectangles that are not drawn
    ticks: tuple[tuple[Tick, ...], tuple[Tick, ...]]  # of the axis across and of the one up


@dataclass(frozen=True)
class Skewed:
    """A class whose sensitive values differ most from those of the release."""

    worst: Worst
    distance: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Distribution:
    """A sensitive column: the release and its most skewed classes."""

    column: str
    metric: str
    values: tuple[str, ...]
    release: tuple[float, ...]
    classes: tuple[Skewed, ...]


@dataclass(frozen=True)
class Overview:
    """The sizes of classes before and after, and the information loss by column."""

    bins: tuple[Bin, ...]
    columns: tuple[Fate, ...]


@dataclass(frozen=True)
class Summary(Overview):
    """The contents of a report."""

    rows: tuple[Example, ...]  # a few records before and after, invented unless the user allows originals
    worst: tuple[Worst | None, ...]  # of each requirement
    lattice: tuple[LatticeNode, ...]
    n_nodes: int | None  # of the lattice, drawn or not; None where the search did not choose levels
    slice: Slice | None  # of a lattice that is too large, or in the columns that were named
    partition: PartitionPlot | None
    sensitive: tuple[Distribution, ...]


def overview(release: Release) -> Overview:
    """Return the part of a summary that needs no figure of its own: two counts of all records."""
    policy, original = release.policy, release.counted.table
    table = recounted(release.rows, policy, release.reference)
    return Overview(
        _bins(original_tables(original, policy), table, as_attackers_see(table, policy)),
        fates(release, original, release.recoding.parts(original)),
    )


def summary(release: Release, pair: Sequence[str] = (), *, originals: bool = False) -> Summary:
    """Collect the contents; the released rows are counted with SQL, as for the verdict.

    ``pair``: the two quasi columns in which the answer is drawn; left out, those that tell most. ``originals``: whether
    the few records that are shown before and after may be records of the input.
    """
    policy = release.policy
    chosen = _places(pair, policy)
    original = release.counted.table
    parts = release.recoding.parts(original)
    table = recounted(release.rows, policy, release.reference)
    judged_classes = as_attackers_see(table, policy)
    texts = _texts(release)
    nodes, n_nodes = _lattice(release, original, whole=not chosen)
    return Summary(
        _bins(original_tables(original, policy), table, judged_classes),
        fates(release, original, parts),
        examples(release, original, parts, originals=originals),
        tuple(
            _worst_of(model.scores(judged_classes), model.lowest_is_worst, table, judged_classes, texts)
            for model in policy.models
        ),
        nodes,
        n_nodes,
        None if nodes else _slice(release, original, chosen),
        None if isinstance(release.recoding, FullDomain) else _partition(release, original, parts, chosen),
        tuple(
            _distribution(name, judged_classes, table, texts, policy) for name in policy.sensitive if table.n_classes
        ),
    )


def _places(pair: Sequence[str], policy: Policy) -> tuple[int, ...]:
    if pair and (len(set(pair)) != 2 or any(name not in policy.quasi for name in pair)):
        raise PolicyError(
            "columns: specify two different columns with role 'quasi'",
            f"columns: {', '.join(policy.quasi)}",
        )
    return tuple(policy.quasi.index(name) for name in pair)


# ── sizes of classes ────────────────────────────────────────────────────────────────────────────────────────

_EDGES = (1, 2, 3, 5, 10, 20, 50, 100)


def _bins(
    before: tuple[FrequencyTable, FrequencyTable], table: FrequencyTable, judged_classes: FrequencyTable
) -> tuple[Bin, ...]:
    old = _shares(before[1].persons, before[0].counts)
    new = _shares(judged_classes.persons, table.counts)
    classes = np.bincount(size_bins(judged_classes.persons), minlength=len(_EDGES))
    return tuple(Bin(name, float(o), float(n), int(c)) for name, o, n, c in zip(SIZES, old, new, classes, strict=True))


def _names() -> tuple[str, ...]:
    names = []
    for low, after in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        high = None if after is None else after - 1
        names.append(f"{low} or more" if high is None else str(low) if high == low else f"{low} to {high}")
    return tuple(names)


SIZES = _names()


def size_bins(persons: Counts) -> NDArray[np.int64]:
    """Return the index of each class among ``SIZES``."""
    return np.searchsorted(np.array(_EDGES), persons, side="right") - 1


def _shares(persons: Counts, records: Counts) -> NDArray[np.float64]:
    sums = np.zeros(len(_EDGES))
    np.add.at(sums, size_bins(persons), records)
    return np.asarray(sums / max(1, records.sum()))


# ── classes ─────────────────────────────────────────────────────────────────────────────────────────────────


def _texts(release: Release) -> dict[str, tuple[str, ...]]:
    """Return the released texts of each quasi-identifier by code; a null comes after them."""
    table = release.rows.groups.table if isinstance(release.rows, Query) else release.rows.table
    return {name: codec.encode_texts(name, table[name]).texts for name in release.policy.quasi}


def _worst_of(
    scores: NDArray[np.float64],
    lowest_is_worst: bool,
    table: FrequencyTable,
    judged_classes: FrequencyTable,
    texts: dict[str, tuple[str, ...]],
) -> Worst | None:
    if not len(scores) or np.ptp(scores) == 0:  # no class is worse than the others
        return None
    order = np.lexsort((judged_classes.persons, scores if lowest_is_worst else -scores))
    return _described(int(order[0]), table, judged_classes, texts)


def _described(
    i: int, table: FrequencyTable, judged_classes: FrequencyTable, texts: dict[str, tuple[str, ...]]
) -> Worst:
    if judged_classes.persons[i] < 2:
        return Worst(int(table.counts[i]), ())
    labels = []
    for j, name in enumerate(table.columns):
        code = int(table.codes[i, j])
        labels.append((name, shortened_label(texts[name][code] if code < len(texts[name]) else None)))
    return Worst(int(table.counts[i]), tuple(labels))


def _distribution(
    name: str, judged_classes: FrequencyTable, table: FrequencyTable, texts: dict[str, tuple[str, ...]], policy: Policy
) -> Distribution:
    histogram = judged_classes.sensitive[name]
    record_histogram = table.sensitive[name]
    totals = np.zeros(record_histogram.n_values, np.int64)
    np.add.at(totals, record_histogram.values, record_histogram.counts)
    domain = record_histogram.domain
    if domain is None:
        raise TypeError("a sensitive column has a domain")
    # Of many numbers nearly all differ, in every class: their distances say more, if they can be had in time.
    n_values = np.count_nonzero(totals)
    is_numeric = domain.numbers is not None and MOST_VALUES < n_values <= MAX_DISTANCES / max(1, table.n_classes)
    requested_metrics = (m.distance for m in policy.models if isinstance(m, TCloseness) and m.column in (None, name))
    metric = next(requested_metrics, "numeric" if is_numeric else "equal")
    distances = distance(_against(histogram, domain, totals), metric)
    first = [int(i) for i in np.lexsort((judged_classes.persons, -distances))[:MOST_CLASSES] if distances[i] > 0]
    inside = [histogram.dense(i, i + 1)[0] for i in first]
    names, bar_of = _bars(domain, totals, inside)
    classes = tuple(
        Skewed(_described(i, table, judged_classes, texts), float(distances[i]), _bar_shares(counts, bar_of))
        for i, counts in zip(first, inside, strict=True)
    )
    return Distribution(name, metric, names, _bar_shares(totals.astype(np.float64), bar_of), classes)


def _against(histogram: Histogram, domain: Domain, totals: Counts) -> Histogram:
    """Return the classes compared with the release itself, without values that are in no released record."""
    present = totals > 0
    return replace(
        histogram,
        values=(np.cumsum(present) - 1)[histogram.values].astype(np.int32),
        n_values=int(present.sum()),
        domain=domain.restricted(present, totals),
    )


def _bars(
    domain: Domain, totals: Counts, inside: Sequence[NDArray[np.float64]]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the bars to draw and the bar of each value; ``inside`` has the counts of the drawn classes.

    These are the values with the greatest share of the whole or of a class, or ranges where there are many numbers.
    """
    present = np.flatnonzero(totals)
    bar_of = np.full(len(totals), -1, np.int64)
    if domain.numbers is not None and len(present) > MOST_VALUES and _distinguishable(domain.numbers[present]):
        low, high = domain.numbers[present].min(), domain.numbers[present].max()
        edges = np.linspace(low, high, MOST_VALUES + 1)
        bar_of[present] = np.clip(np.searchsorted(edges, domain.numbers[present], side="right") - 1, 0, MOST_VALUES - 1)
        digits = max(0, 2 - math.floor(math.log10((high - low) / MOST_VALUES)))
        return tuple(f"{a:,.{digits}f} to {b:,.{digits}f}" for a, b in pairwise(edges.tolist())), bar_of
    greatest = np.max([counts / counts.sum() for counts in (totals, *inside)], axis=0)[present]
    n = len(present) if len(present) <= MOST_VALUES else MOST_VALUES - 1
    rest = np.ones(len(present), np.bool_)
    rest[np.lexsort((present, -totals[present], -greatest))[:n]] = False
    order = present[np.lexsort((present, -totals[present], rest))]
    bar_of[order] = np.minimum(np.arange(len(order)), n)
    names = [shortened_label(domain.texts[value]) for value in order[:n]]
    return (*names, *([f"{len(order) - n} others"] if len(order) > n else [])), bar_of


def _distinguishable(numbers: NDArray[np.float64]) -> bool:
    """Return whether ranges can be drawn: not if the numbers are equal as floats, or their range is empty."""
    reach = float(numbers.max()) - float(numbers.min())
    return 1e-12 * float(np.abs(numbers).max()) < reach < math.inf


def _bar_shares(counts: NDArray[np.float64], bar_of: NDArray[np.int64]) -> tuple[float, ...]:
    inside = bar_of >= 0
    sums = np.bincount(bar_of[inside], weights=counts[inside], minlength=int(bar_of.max()) + 1)
    return tuple((sums / max(1.0, sums.sum())).tolist())


# ── pictures of the search ──────────────────────────────────────────────────────────────────────────────────


def _lattice(release: Release, original: FrequencyTable, *, whole: bool) -> tuple[tuple[LatticeNode, ...], int | None]:
    recoding = release.recoding
    if not isinstance(recoding, FullDomain):
        return (), None
    lattice = Lattice(tuple(h.height for h in recoding.hierarchies))
    n = lattice.n_nodes
    if not whole or n > MOST_NODES or n * original.n_classes > MOST_WORK:
        return (), n
    state = _judge(release, recoding, original)
    nodes = []
    for height in range(lattice.height + 1):
        layer = list(lattice.layer(height))
        nodes += [LatticeNode(i - (len(layer) - 1) / 2, height, state(node)) for i, node in enumerate(layer)]
    return tuple(nodes), n


def _slice(release: Release, original: FrequencyTable, chosen: tuple[int, ...]) -> Slice | None:
    """Return what other levels of two columns would have meant; by default the two tallest columns."""
    recoding = release.recoding
    if not isinstance(recoding, FullDomain) or len(recoding.hierarchies) < 2:
        return None
    hierarchies = recoding.hierarchies
    tallest = np.argsort([-h.height for h in hierarchies], kind="stable").tolist()
    across, up = chosen or sorted(tallest[:2])
    if hierarchies[across].n_levels * hierarchies[up].n_levels * original.n_classes > MOST_WORK:
        return None
    state = _judge(release, recoding, original)
    nodes = []
    for x, y in product(range(hierarchies[across].n_levels), range(hierarchies[up].n_levels)):
        levels = dict(enumerate(recoding.node)) | {across: x, up: y}
        position, height = hierarchies[across].number(x), hierarchies[up].number(y)
        nodes.append(LatticeNode(position, height, state(tuple(levels.values()))))
    crowd = label_threshold(release.policy)
    labels = (
        _of_levels(original, across, hierarchies[across], crowd),
        _of_levels(original, up, hierarchies[up], crowd),
    )
    return Slice(hierarchies[across].column, hierarchies[up].column, tuple(nodes), labels)


def _of_levels(original: FrequencyTable, j: int, hierarchy: Hierarchy, crowd: int) -> tuple[str, ...]:
    """Return for each level the most common label, or the number of the level if too few share one."""
    labels = []
    for level in range(hierarchy.n_levels):
        persons = per_label(original, j, hierarchy, level)
        commonest = int(persons.argmax()) if len(persons) else -1
        common = commonest >= 0 and persons[commonest] >= crowd
        labels.append(shortened_label(hierarchy.labels[level][commonest]) if common else str(hierarchy.number(level)))
    return tuple(labels)


def _judge(release: Release, recoding: FullDomain, original: FrequencyTable) -> Callable[[Node], str]:
    """Return a function that classifies nodes."""
    problem = Problem.of(original, release.policy, population=release.reference.population)

    def state(node: Node) -> str:
        if node == recoding.node:
            return "chosen"
        return "safe" if problem.evaluate(node, bounded=True).feasible else "unsafe"

    return state


def _partition(
    release: Release, original: FrequencyTable, parts: Parts, chosen: tuple[int, ...]
) -> PartitionPlot | None:
    """Return the classes in two columns, by default those split most; each as wide as what its label covers."""
    values = release.recoding.released
    kept_parts = np.flatnonzero(~parts.suppressed)
    distinct = [len(np.unique(parts.codes[kept_parts, j])) for j in range(len(values))]
    most_split = [j for j in np.argsort([-n for n in distinct], kind="stable").tolist() if distinct[j] > 1][:2]
    pair = chosen or most_split
    if not len(kept_parts) or len(pair) < 2 or any(not len(covered) for j in pair for covered in values[j].covers):
        return None
    across, up = pair
    class_of, firsts = group(packed(parts.codes[kept_parts][:, [across, up]]))
    records = sum_by_class(parts.counts[kept_parts], class_of, len(firsts))
    order = np.argsort(-records, kind="stable")[:MOST_BOXES]
    boxes = []
    for i in order:
        codes = parts.codes[kept_parts[firsts[i]]]
        (left, right), (bottom, top) = (_ends(values[j], int(codes[j])) for j in (across, up))
        boxes.append(Rectangle(left, right, bottom, top, int(records[i])))
    hidden = len(firsts) - len(boxes)
    crowd = label_threshold(release.policy)
    ticks = (_ticks(original, across, values[across], crowd), _ticks(original, up, values[up], crowd))
    return PartitionPlot(values[across].hierarchy.column, values[up].hierarchy.column, tuple(boxes), hidden, ticks)


def _ends(values: Values, code: int) -> tuple[float, float]:
    leaves = values.covers[code]
    return float(leaves.min()), float(leaves.max() + 1)


def _ticks(original: FrequencyTable, j: int, values: Values, crowd: int) -> tuple[Tick, ...]:
    """Return a few leaves, about evenly spaced along the axis; only those that many people have."""
    hierarchy = values.hierarchy
    n = len(hierarchy.leaves)
    common = np.flatnonzero(per_label(original, j, hierarchy, 0)[hierarchy.table[0]] >= crowd)
    ticks: list[Tick] = []
    for target in (np.arange(MOST_TICKS) + 0.5) * n / MOST_TICKS - 0.5:
        if not len(common):
            break
        leaf = int(common[np.abs(common - target).argmin()])
        if not ticks or leaf + 0.5 - ticks[-1].at >= n / (2 * MOST_TICKS):
            ticks.append(Tick(leaf + 0.5, shortened_label(hierarchy.labels[0][hierarchy.table[0, leaf]])))
    return tuple(ticks)
