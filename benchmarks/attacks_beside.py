"""Do anonymeter's three questions put releases in the same order as ours?

The same people as they are, recoded by ``local`` and by ``mondrian``, and with every column shuffled. anonymeter
(M. Giomi et al., PoPETs 2023; ``pip install anonymeter``) takes a release for synthetic data and attacks it beside
people who are not in it; ranges are given to it as their middle. Without it our figures are printed alone. Both draw
at random, so the means over several seeds are compared, with their standard errors.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Sequence
from importlib import util
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import shoal

QUASI = ["age", "height", "town"]
SECRET = "illness"
QUESTIONS = ("singled out", "linked", "inferred")


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
    attacks = shoal.attack(
        release, original=original, control=outside, id="id", quasi=QUASI, sensitive=[SECRET], sample=None
    )
    risks = [attacks.named(name) for name in ("singling out", "identity linking", "inference")]
    # Not cut off at 0 as risk.above is: the mean of what chance gives would lie above it.
    return [(risk.share - risk.control.share) / (1 - risk.control.share) for risk in risks if risk.control is not None]


def theirs(release: pa.Table, original: pa.Table, outside: pa.Table, attacks: int, seed: int) -> list[float]:
    """anonymeter's risks, in the same order."""
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    np.random.seed(seed)  # noqa: NPY002 - which anonymeter draws from
    ori, syn, control = (_plain(table) for table in (original, release, outside))
    rates = []
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
            rates.append(evaluator.evaluate(**how).risk().value)
    return rates


def _plain(table: pa.Table) -> Any:
    frame = table.drop_columns(["id"]).to_pandas()
    for name in QUASI[:2]:
        frame[name] = [_middle(text) for text in frame[name]]
        frame[name] = frame[name].fillna(frame[name].mean())
    return frame


def _middle(text: str) -> float:
    numbers = [float(x) for x in re.findall(r"\d+(?:\.\d+)?", str(text))]
    return float(np.mean(numbers)) if numbers else float("nan")


Figures = NDArray[np.float64]  # (seeds, releases, questions)


def table_lines(tool: str, names: Sequence[str], figures: Figures) -> list[str]:
    """Means over the seeds with their standard errors; and for each question whether the releases stand in order.

    They do not where a release is riskier than the one before by more than two standard errors of the difference.
    """
    n = len(figures)
    print(f"{tool:14}" + "".join(f"{question:>18}" for question in QUESTIONS))
    for j, name in enumerate(names):
        mean, error = figures[:, j].mean(axis=0), figures[:, j].std(axis=0, ddof=min(1, n - 1)) / np.sqrt(n)
        print(f"{name:14}" + "".join(f"{m:10.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)))
    rises = np.diff(figures, axis=1)
    mean, error = rises.mean(axis=0), rises.std(axis=0, ddof=min(1, n - 1)) / np.sqrt(n)
    orders = [_order(*pair) for pair in zip(mean.T, error.T, strict=True)]
    print(f"{'':14}" + "".join(f"{order:>18}" for order in orders))
    return orders


def _order(rises: Figures, errors: Figures) -> str:
    if (rises > np.maximum(2 * errors, 1e-9)).any():
        return "out of order"
    return "in order" if (rises <= 0).all() else "in order or equal"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--attacks", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    mine, their_figures, names = [], [], []
    for seed in range(arguments.seeds):
        random = np.random.default_rng(seed)
        everybody = people(random, 2 * arguments.people)
        original, outside = everybody.slice(0, arguments.people), everybody.slice(arguments.people)
        tables = releases(original, random, 5)
        names = list(tables)
        mine.append([ours(t, original, outside) for t in tables.values()])
        if util.find_spec("anonymeter") is not None:
            their_figures.append([theirs(t, original, outside, arguments.attacks, seed) for t in tables.values()])
    table_lines("shoal", names, np.array(mine))
    if their_figures:
        table_lines("anonymeter", names, np.array(their_figures))
    else:
        print("anonymeter is not installed")


if __name__ == "__main__":
    main()
