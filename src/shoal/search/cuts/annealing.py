"""Annealing: change the cuts of all columns step by step, and accept worse ones less and less often.

W. E. Winkler, "Using simulated annealing for k-anonymity", US Census Bureau RR 2002-07.
Needs  models that are judged class by class.
Finds  a cut of every column, with failing classes suppressed; never worse than the best full-domain solution if the
       lattice has at most 50 000 nodes. Nothing is proved.
Costs  one grouping per step: 40 steps per bit, at least 400 and at most 8 000.

A step flips one bit of the cut (``chromosome``: a label is split or joined, an interval starts or not), or moves a
whole column one level up or down. The search starts at the top. It may pass through cuts that suppress too many
records, at a penalty, but never returns one. The report gives no schedule: here the temperature falls geometrically to
a thousandth, starting from a third of the median loss of the first steps upwards.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.recoding import Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.chromosome import Bits, Chromosome
from shoal.search.problem import Problem

PER_BIT, MIN_STEPS, MAX_STEPS = 40, 400, 8000  # steps
SAMPLE = 30  # steps that estimate how much a step loses
WARMEST = 0.3  # of that loss
COLDEST = 1e-3  # of the first temperature
CHARGE = 5.0  # penalty per record suppressed beyond the limit, relative to the cost of a record at the top
WHOLE_LEVEL = 0.1  # the share of steps that move a whole column


def annealing(problem: Problem) -> Recoding:
    """Run the annealing until the final temperature or the time budget is reached."""
    require_class_by_class(problem, "annealing")
    rng = np.random.default_rng(problem.terms.seed)
    chromosome = Chromosome(problem)
    founders = chromosome.founders()
    current, best = founders[0], min(founders, key=lambda individual: individual.rank)
    charge = CHARGE * max(current.value, best.value) / problem.table.n_records
    n_steps = int(np.clip(PER_BIT * chromosome.n_bits, MIN_STEPS, MAX_STEPS)) if chromosome.n_bits else 0
    losses: list[float] = []
    for i in range(n_steps):
        if problem.out_of_time:
            break
        neighbour = chromosome.judged(_neighbour(chromosome, current.bits, rng))
        worse = neighbour.value - current.value + charge * (neighbour.excess - current.excess)
        if worse > 0 and len(losses) < SAMPLE:
            losses.append(worse)
        temperature = WARMEST * float(np.median(losses or [0.0])) * COLDEST ** (i / n_steps)
        if worse <= 0 or rng.random() < math.exp(-worse / temperature):
            current = neighbour
            best = min(best, current, key=lambda individual: individual.rank)
        problem.progress("cooling", (i + 1) / n_steps)
    return chromosome.answer(best, "annealing")


def _neighbour(chromosome: Chromosome, bits: Bits, rng: np.random.Generator) -> Bits:
    """Return the bits with one bit flipped or one column moved by a level."""
    bits = bits.copy()
    if rng.random() < WHOLE_LEVEL:
        j = int(rng.integers(len(chromosome.genes)))
        height = chromosome.problem.lattice.heights[j]
        levels = [chromosome.genes[j].at_level(level) for level in range(height + 1)]
        mine = chromosome.of_column(bits, j)
        at = min(range(height + 1), key=lambda level: (int((levels[level] != mine).sum()), level))
        moved = int(np.clip(at + rng.choice([-1, 1]), 0, height))
        bits[chromosome.ends[j] : chromosome.ends[j + 1]] = levels[moved]
    else:
        active = chromosome.active(bits)
        at = int(active[rng.integers(len(active))])
        bits[at] = ~bits[at]
    return bits
