"""Genetic: cuts of all columns as bit strings, evolved in a population that keeps the best.

V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
Needs  models that are judged class by class.
Finds  a cut of every column, with failing classes suppressed; never worse than the best full-domain solution if the
       lattice has at most 50 000 nodes. Nothing is proved.
Costs  one grouping per child: 20 children per bit, at least 400 and at most 4 000.

Steady state, as in the paper: two parents, chosen by rank, produce one child by crossover and mutation, which replaces
the worst individual. Departures from the paper: trees have a bit per label instead of one between any two values, so
that no child needs repair; individuals that may not be released rank below all others, by the records suppressed beyond
the limit; the first population contains the best lattice node and children of it and of the top.
"""

from __future__ import annotations

import bisect

import numpy as np

from shoal.recoding import Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.chromosome import Bits, Chromosome, Individual
from shoal.search.problem import Problem

POPULATION = 40
PER_BIT, MIN_CHILDREN, MAX_CHILDREN = 20, 400, 4000  # children
BIAS = 1.6  # how much more often the best is chosen as a parent than the median


def genetic(problem: Problem) -> Recoding:
    """Evolve the population until enough children were produced or time runs out."""
    require_class_by_class(problem, "genetic")
    rng = np.random.default_rng(problem.terms.seed)
    chromosome = Chromosome(problem)
    population = _Population(chromosome.founders())
    n_children = int(np.clip(PER_BIT * chromosome.n_bits, MIN_CHILDREN, MAX_CHILDREN)) if chromosome.n_bits else 0
    for i in range(n_children):
        if problem.out_of_time:
            break
        mother, father = population.parent(rng), population.parent(rng)
        bits = _mutated(chromosome, _crossed(mother.bits, father.bits, rng), rng)
        if bits.tobytes() not in population.evaluated_bits:
            population.add(chromosome.judged(bits))
        problem.progress("breeding cuts", (i + 1) / n_children)
    return chromosome.answer(population.best, "genetic")


class _Population:
    """The best individuals so far, sorted, without duplicates."""

    def __init__(self, founders: list[Individual]) -> None:
        self.members: list[Individual] = []
        self.evaluated_bits: set[bytes] = set()
        for individual in founders:
            self.add(individual)

    @property
    def best(self) -> Individual:
        """The best individual so far."""
        return self.members[0]

    def add(self, individual: Individual) -> None:
        """Insert an individual in order; drop the worst if there are too many."""
        self.evaluated_bits.add(individual.bits.tobytes())
        bisect.insort(self.members, individual, key=lambda member: member.rank)
        del self.members[POPULATION:]

    def parent(self, rng: np.random.Generator) -> Individual:
        """Choose a parent by rank, with Whitley's linear bias."""
        u = rng.random()
        position = (BIAS - np.sqrt(BIAS * BIAS - 4 * (BIAS - 1) * u)) / (2 * (BIAS - 1))
        return self.members[int(len(self.members) * position)]


def _crossed(mother: Bits, father: Bits, rng: np.random.Generator) -> Bits:
    """Return the two-point crossover: the bits between the points come from the father."""
    first, last = np.sort(rng.integers(0, len(mother) + 1, 2))
    child = mother.copy()
    child[first:last] = father[first:last]
    return child


def _mutated(chromosome: Chromosome, bits: Bits, rng: np.random.Generator) -> Bits:
    """Flip one bit that has an effect, sometimes two or three."""
    bits = bits.copy()
    for _ in range(rng.geometric(0.7)):
        active = chromosome.active(bits)
        at = active[rng.integers(len(active))]
        bits[at] = ~bits[at]
    return bits
