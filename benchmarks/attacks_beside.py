"""Do anonymeter's three questions put releases in the same order as ours?

The same people as they are, recoded by ``local`` and by ``mondrian``, and with every column shuffled. anonymeter
(M. Giomi et al., PoPETs 2023; ``pip install anonymeter``) takes a release for synthetic data and attacks it beside
people who are not in it; ranges are given to it as their middle. Without it our figures are printed alone.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import shoal

QUASI = ["age", "height", "town"]
SECRET = "illness"


def people(random: np.random.Generator, n: int) -> pa.Table:
    """The illness depends on age and town, mostly."""
    age, town = random.integers(20, 90, n), random.choice(list("abcdefgh"), n)
    by_rule = (age // 10 + np.array([ord(t) for t in town])) % 5
    illness = np.where(random.random(n) < 0.7, by_rule, random.integers(0, 5, n))
    return pa.table({
        "id": [str(i) for i in range(n)],
        "age": [str(v) for v in age],
        "height": [str(v) for v in random.integers(150, 200, n)],
        "town": town,
        SECRET: [f"i{v}" for v in illness],
    })  # fmt: skip


def releases(table: pa.Table, random: np.random.Generator, k: int) -> dict[str, pa.Table]:
    """In the order in which risk must fall."""

    def recoded(algorithm: str) -> pa.Table:
        policy = shoal.Policy.of({
            "columns": {
                "id": {"role": "plain"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
                "height": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
                "town": {"role": "quasi"},
                SECRET: {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": k}],
            "release": {"algorithm": algorithm},
        })  # fmt: skip
        return shoal.anonymize(table, policy).table

    shuffled = pa.table({name: random.permutation(table[name].to_pylist()) for name in table.column_names})
    return {
        "original": table.take(pa.array(random.permutation(table.num_rows))),
        "local": recoded("local"),
        "mondrian": recoded("mondrian"),
        "shuffled": shuffled,
    }


def ours(release: pa.Table, original: pa.Table, outside: pa.Table) -> list[float]:
    """What is left beyond the control: singled out, linked, inferred."""
    found = shoal.attack(
        release, original=original, control=outside, id="id", quasi=QUASI, sensitive=[SECRET], sample=None
    )
    return [found.named(name).above for name in ("singling out", "identity linking", "inference")]


def theirs(release: pa.Table, original: pa.Table, outside: pa.Table, attacks: int, seed: int) -> list[float]:
    """anonymeter's risks, in the same order."""
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    np.random.seed(seed)  # noqa: NPY002 - which anonymeter draws from
    ori, syn, control = (_plain(table) for table in (original, release, outside))
    found = []
    evaluators: list[tuple[Any, dict[str, Any]]] = [
        (SinglingOutEvaluator(ori=ori, syn=syn, control=control, n_attacks=attacks, n_cols=3, seed=seed), {}),
        (
            LinkabilityEvaluator(
                ori=ori, syn=syn, control=control, n_attacks=attacks, aux_cols=(QUASI[:1], QUASI[1:]), n_neighbors=10
            ),
            {"n_jobs": 1},
        ),
        (
            InferenceEvaluator(ori=ori, syn=syn, control=control, aux_cols=QUASI, secret=SECRET, n_attacks=attacks),
            {"n_jobs": 1},
        ),
    ]
    for evaluator, how in evaluators:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(max(0.0, evaluator.evaluate(**how).risk().value))
    return found


def _plain(table: pa.Table) -> Any:
    frame = table.drop_columns(["id"]).to_pandas()
    for name in QUASI[:2]:
        frame[name] = [_middle(text) for text in frame[name]]
        frame[name] = frame[name].fillna(frame[name].mean())
    return frame


def _middle(text: str) -> float:
    numbers = [float(x) for x in re.findall(r"\d+(?:\.\d+)?", str(text))]
    return float(np.mean(numbers)) if numbers else float("nan")


def falls(figures: Sequence[float]) -> bool:
    """Whether no release is riskier than the one before, up to what a few hundred attacks can tell."""
    return all(later <= earlier + 0.05 for earlier, later in pairwise(figures))


def main() -> None:
    """Print a table, and whether both put the releases in the same order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--attacks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    everybody = people(random, 2 * given.people)
    original, outside = everybody.slice(0, given.people), everybody.slice(given.people)
    rows = {name: ours(t, original, outside) for name, t in releases(original, random, 5).items()}
    print("shoal        singled out   linked   inferred")
    for name, figures in rows.items():
        print(f"{name:14}" + "".join(f"{figure:10.3f}" for figure in figures))
    print("in order:", [falls(column) for column in zip(*rows.values(), strict=True)])
    try:
        import anonymeter  # noqa: F401
    except ImportError:
        print("anonymeter is not installed")
        return
    random = np.random.default_rng(given.seed)
    people(random, 2 * given.people)
    tables = releases(original, random, 5)
    beside = {name: theirs(t, original, outside, given.attacks, given.seed) for name, t in tables.items()}
    print("anonymeter   singled out   linked   inferred")
    for name, figures in beside.items():
        print(f"{name:14}" + "".join(f"{figure:10.3f}" for figure in figures))
    print("in order:", [falls(column) for column in zip(*beside.values(), strict=True)])


if __name__ == "__main__":
    main()
