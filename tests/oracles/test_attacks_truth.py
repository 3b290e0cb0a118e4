"""The program that asks whether attacks tell the truth, on a few small draws of every kind of release."""

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SEEDS, PEOPLE = range(6), 100


pytestmark = [pytest.mark.xdist_group("attacks_truth"), pytest.mark.long]  # the releases are attacked once


@pytest.fixture(scope="module")
def program():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("attacks_truth")


@pytest.fixture(scope="module")
def lines(program):
    return {
        name: program.measured(make, PEOPLE, SEEDS, len(SEEDS), chance=name in program.BY_CHANCE)
        for name, make in program.RELEASES.items()
    }


def test_what_is_reported_is_what_brute_force_finds(program, lines):
    n_compared = 0
    for name, attacks in lines.items():
        for attack, line in attacks.items():
            if name in program.UPPER:
                assert all(share >= one.share for share, one in zip(line.share, line.exact, strict=True))
            elif not line.chance:
                assert line.apart < 1e-9, (name, attack)
                assert len(line.exact) == len(SEEDS)
                n_compared += len(SEEDS)
    assert n_compared > 600


def test_every_attack_meets_a_release_that_falls_to_it_and_one_that_cannot(program, lines):
    for attack in program.ATTACKS:
        met = [of[attack] for of in lines.values() if attack in of]
        assert max(line.rate_above for line in met) >= 0.4, attack
        assert min(line.rate_above for line in met) < 0.01, attack
        assert len(met) > 2, attack


def test_harmless_releases_are_not_called_possible_nor_others_tolerated(lines):
    n_found = 0
    for name, attacks in lines.items():
        for attack, line in attacks.items():
            if line.rate_above <= line.tolerance:
                assert sum(line.alarms) <= 1, (name, attack)
            assert not any(line.misses), (name, attack)
            n_found += sum(line.alarms)
    assert n_found > 100


def test_most_intervals_hold_the_rate_of_all_draws(program, lines):
    held = [
        low - 1e-9 <= rate <= high + 1e-9
        for name, attacks in lines.items()
        for line in attacks.values()
        for rate, ends in ((line.rate, line.ends), (line.rate_above, line.beyond))
        for low, high in ends
        if name not in program.CHOSEN | program.UPPER and not line.of_draw
    ]
    assert np.mean(held) >= 0.93


def test_no_intruder_exceeds_one_in_k(program):
    for name in program.CHOSEN:
        for seed in SEEDS:
            draw = program.RELEASES[name](np.random.default_rng(seed), PEOPLE)
            reached = draw.attacked().named("identity linking")
            assert max(one.successes for one in reached.intruders.values()) / PEOPLE <= 1 / 5 + 1e-9
