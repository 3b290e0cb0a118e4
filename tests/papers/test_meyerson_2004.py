"""The opening example of Meyerson and Williams: four patients, made 2-anonymous."""

import math

import pandas as pd
import pytest

import shoal

PATIENTS = {
    "first": ["Harry", "John", "Beatrice", "John"],
    "last": ["Stone", "Reyser", "Stone", "Ramos"],
    "age": ["34", "36", "47", "22"],
    "race": ["Afr-Am", "Cauc", "Afr-Am", "Hisp"],
}
STONES, JOHNS = ("*", "Stone", "*", "Afr-Am"), ("John", "*", "*", "*")


def release(algorithm, k=2):
    fields = {
        "columns": {name: {"role": "quasi"} for name in PATIENTS},
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": algorithm},
    }
    return shoal.anonymize(pd.DataFrame(PATIENTS, dtype="str"), shoal.Policy.of(fields))


@pytest.mark.parametrize("algorithm", ["cover", "forest"])
def test_the_stones_and_the_johns_are_a_class_each_with_ten_cells_suppressed(algorithm):
    table = release(algorithm).table
    assert sorted(table.itertuples(index=False, name=None)) == [STONES, STONES, JOHNS, JOHNS]
    assert (table == "*").to_numpy().sum() == 10


def test_among_all_subsets_the_factor_is_the_constant_of_the_paper_or_less():
    for k in range(2, 50):
        factor = (2 * k - 1) ** 2 / (2 * k) * sum(1 / i for i in range(1, 2 * k))
        published = 4  # the constant that the abstract names, of k log k
        assert factor <= published * k * (1 + math.log(k))


def test_each_record_needs_its_own_cells_so_here_the_answer_shows_that_nothing_is_better():
    assert release("cover").recoding.claim == "suppresses at most 1 times as many cells as necessary"
