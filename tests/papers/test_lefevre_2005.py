"""Incognito (LeFevre et al. 2005) on its six patients: birth date, sex and zip, k = 2."""

import pyarrow as pa

import shoal
from shoal.engines.local import LocalEngine
from shoal.search import Problem
from shoal.search.full_domain.incognito import incognito, satisfying

PATIENTS = """
1/21/76 male 53715
4/13/86 female 53715
2/28/76 male 53703
1/21/76 male 53703
4/13/86 female 53706
2/28/76 female 53706
"""
NAMES = ("birth", "sex", "zip")


def patients():
    rows = [line.split() for line in PATIENTS.split("\n") if line]
    return pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))


def policy(**release):
    tree = {"537**": {"5371*": ["53715"], "5370*": ["53703", "53706"]}}
    return shoal.Policy.of(
        {
            "columns": {
                "birth": {"role": "quasi"},
                "sex": {"role": "quasi"},
                "zip": {"role": "quasi", "hierarchy": {"tree": tree}},
            },
            "require": [{"model": "k-anonymity", "k": 2}],
            "release": {"algorithm": "incognito", **release},
        }
    )


def test_incognito_finds_every_2_anonymous_generalization():
    problem = Problem(LocalEngine.of(patients()).count(policy()).table, policy().require)
    # Three minimal ones: birth and sex hidden, birth and zip hidden, sex and zip hidden.
    assert satisfying(problem) == [(0, 1, 2), (1, 0, 2), (1, 1, 0), (1, 1, 1), (1, 1, 2)]


def test_what_fails_for_two_columns_is_not_looked_at_for_three():
    problem = Problem(LocalEngine.of(patients()).count(policy()).table, policy().require)
    incognito(problem)
    # The top; each column alone, its ground satisfying; then the pairs below their tops: birth and sex 1, birth and zip
    # 2, sex and zip 2, all of which fail. No node of three columns is left whose pairs satisfy.
    assert problem.n_evaluated == 1 + 3 + (1 + 2 + 2) + 0


def test_incognito_answers_with_the_best_of_them():
    release = shoal.anonymize(patients(), policy())
    other = shoal.anonymize(patients(), policy(algorithm="exhaustive"))
    assert release.levels == other.levels
    assert release.recoding.proved
    assert release.measured["k"] == 2
