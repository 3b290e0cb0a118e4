"""Genetic: cuts of all columns as bits, bred in a population that keeps the best.

V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
Needs  models that are judged class by class.
Finds  a cut of every column, the classes that fail suppressed; never worse than the best full-domain answer where the
       lattice has at most 50 000 nodes. Nothing is proved.
Costs  one grouping per child, of which there are 20 per bit, 400 at the least and 4 000 at the most.

Steady state, as in the paper: two parents, chosen by rank, have one child by crossover and mutation, and it takes the
place of the worst. Departures: trees have a bit per label instead of one between any two values, so that no child needs
repair; those that may not be released rank below all that may, by the records they suppress too many; the best node of
the lattice is among the first, and the first others are children of it and of the top.
"""

from __future__ import annotations

import bisect

import numpy as np

from shoal.recoding import Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.chromosome import Bits, Chromosome, Individual
from shoal.search.problem import Problem

POPULATION = 40
PER_BIT, LEAST, MOST = 20, 400, 4000  # children
BIAS = 1.6  # how much more often the best is chosen as a parent than the middle one


def genetic(problem: Problem) -> Recoding:
    """Breed until enough children were born, or the time is over."""
    require_class_by_class(problem, "genetic")
    rng = np.random.default_rng(problem.terms.seed)
    chromosome = Chromosome(problem)
    population = _Population(chromosome.founders())
    n_children = int(np.clip(PER_BIT * chromosome.n_bits, LEAST, MOST)) if chromosome.n_bits else 0
    for i in range(n_children):
        if problem.out_of_time:
            break
        mother, father = population.parent(rng), population.parent(rng)
        bits = _mutated(chromosome, _crossed(mother.bits, father.bits, rng), rng)
        if bits.tobytes() not in population.seen:
            population.add(chromosome.judged(bits))
        problem.progress("breeding cuts", (i + 1) / n_children)
    return chromosome.answer(population.best, "genetic")


class _Population:
    """The best so far, in order, each once."""

    def __init__(self, founders: list[Individual]) -> None:
        self.members: list[Individual] = []
        self.seen: set[bytes] = set()
        for individual in founders:
            self.add(individual)

    @property
    def best(self) -> Individual:
        """The first of them."""
        return self.members[0]

    def add(self, individual: Individual) -> None:
        """In its place; the worst leaves where there are too many."""
        self.seen.add(individual.bits.tobytes())
        bisect.insort(self.members, individual, key=lambda member: member.rank)
        del self.members[POPULATION:]

    def parent(self, rng: np.random.Generator) -> Individual:
        """By rank: Whitley's linear bias."""
        u = rng.random()
        place = (BIAS - np.sqrt(BIAS * BIAS - 4 * (BIAS - 1) * u)) / (2 * (BIAS - 1))
        return self.members[int(len(self.members) * place)]


def _crossed(mother: Bits, father: Bits, rng: np.random.Generator) -> Bits:
    """Two points: what lies between them comes from the father."""
    first, last = np.sort(rng.integers(0, len(mother) + 1, 2))
    child = mother.copy()
    child[first:last] = father[first:last]
    return child


def _mutated(chromosome: Chromosome, bits: Bits, rng: np.random.Generator) -> Bits:
    """One bit that makes a difference is turned, sometimes two or three."""
    bits = bits.copy()
    for _ in range(rng.geometric(0.7)):
        active = chromosome.active(bits)
        at = active[rng.integers(len(active))]
        bits[at] = ~bits[at]
    return bits
