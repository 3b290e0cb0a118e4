"""suppressed = "keep": stars must pass as a class, and only what fails becomes stars. What that can miss.

At a node the searches of the lattice suppress the classes that fail. If these do not pass as stars the node is given
up, though another class among the stars might let them pass. Where any two classes can be joined and unions of passing
classes pass, no release is missed by that: if all classes pass, stars among them, all records as one class do too, and
nothing needs to be suppressed at the top. What is missed is a lower loss, so the answer is not called proved.
"""

import itertools
import math
import random
from collections import Counter

import pyarrow as pa
import pytest

import shoal
from shoal.errors import InfeasibleError


def passes(model, values):
    n, counts = len(values), Counter(values)
    match model["model"]:
        case "k-anonymity":
            return n >= model["k"]
        case "distinct-l-diversity":
            return len(counts) >= model["l"]
        case "entropy-l-diversity":
            return -sum(c / n * math.log(c / n) for c in counts.values()) >= math.log(model["l"]) - 1e-9
        case "alpha-k-anonymity":
            return n >= model["k"] and max(counts.values()) / n <= model["alpha"] + 1e-9


def generalized(text, level):
    return text[: 2 - level] + "*" * level


def exists(rows, models, limit, levels):
    """Whether some node and some of its classes as stars make a release: every node, every set of classes."""
    for node in itertools.product(*(range(of) for of in levels)):
        classes = {}
        for *quasi, ill in rows:
            classes.setdefault(tuple(map(generalized, quasi, node)), []).append(ill)
        for n_stars in range(len(classes)):
            for stars in itertools.combinations(classes, n_stars):
                gone = [ill for key in stars for ill in classes[key]]
                kept = [values for key, values in classes.items() if key not in stars]
                if len(gone) <= limit and all(passes(m, c) for m in models for c in (*kept, *([gone] if gone else ()))):
                    return True
    return False


def anonymized(rows, models, limit, algorithm, max_level=None):
    table = pa.table({name: list(column) for name, column in zip("abs", zip(*rows, strict=True), strict=True)})
    column = {"role": "quasi", "hierarchy": {"mask": "right"}, "max_level": max_level}
    policy = shoal.Policy.of(
        {
            "columns": {"a": column, "b": column, "s": {"role": "sensitive"}},
            "require": list(models),
            "release": {"algorithm": algorithm, "suppressed": "keep", "max_suppression": limit / len(rows)},
        }
    )
    return shoal.anonymize(table, policy)


@pytest.mark.parametrize("algorithm", ["optimal", "exhaustive", "mingen"])
def test_no_release_is_missed_where_all_records_may_be_one_class(algorithm):
    rng = random.Random(5)
    outcomes = Counter()
    for _ in range(25):
        n = rng.choice((4, 6, 8))
        rows = [(*(rng.choice("12") + rng.choice("12") for _ in "ab"), rng.choice("xxxyz")) for _ in range(n)]
        models = rng.choice(
            (
                [{"model": "k-anonymity", "k": rng.randint(2, 5)}],
                [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": rng.randint(2, 3)}],
                [{"model": "entropy-l-diversity", "l": rng.choice((1.5, 2.0, 2.5))}],
                [{"model": "alpha-k-anonymity", "alpha": rng.choice((0.4, 0.5, 0.75)), "k": 2}],
            )
        )
        limit = rng.choice((0, n // 4, n // 2, n))
        if exists(rows, models, limit, (3, 3)):
            answer = anonymized(rows, models, limit, algorithm)
            outcomes["with stars" if answer.suppressed else "without"] += 1
            assert not (answer.suppressed and answer.recoding.proved)
        else:
            with pytest.raises(InfeasibleError):
                anonymized(rows, models, limit, algorithm)
            outcomes["none"] += 1
    assert {"with stars", "without", "none"} <= set(outcomes)


def test_a_release_is_missed_where_max_level_keeps_classes_apart_and_the_error_says_by_which_rule():
    rows = [("11", "11", "x"), ("12", "12", "x"), ("12", "12", "y"), ("21", "21", "x"), ("21", "21", "y")]
    models = [{"model": "k-anonymity", "k": 2}]
    assert exists(rows, models, 3, (1, 1))  # the first as a star is alone; with the next two it is not
    with pytest.raises(InfeasibleError, match="with no records suppressed but those that fail"):
        anonymized(rows, models, 3, "optimal", max_level=0)
    assert anonymized(rows, models, 3, "optimal").classes == 2
