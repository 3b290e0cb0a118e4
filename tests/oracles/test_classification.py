"""The classification metric: counted by hand for every algorithm, and its optimum found by looking everywhere."""

import random
from collections import Counter, defaultdict

import pandas as pd
import pytest

import shoal
from examples import tables
from shoal.search import SEARCHES


def table(seed: int, n: int = 18) -> pd.DataFrame:
    draw = random.Random(seed)
    rows = [(draw.choice(["11", "12", "13", "21", "22"]), draw.choice("67"), draw.choice("aab")) for _ in range(n)]
    return pd.DataFrame(rows, columns=["p", "q", "s"])


def policy(algorithm: str, k: int = 3, **release: object) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "p": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "q": {"role": "quasi"},
            "s": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": algorithm, "objective": "classification", "label": "s", **release},
    })  # fmt: skip


def metric(release: shoal.Release, n: int) -> float:
    classes = defaultdict(Counter)
    for p, q, s in release.table.itertuples(index=False):
        classes[p, q][s] += 1
    return 1 - sum(max(labels.values()) for labels in classes.values()) / n


@pytest.mark.parametrize("algorithm", SEARCHES)
def test_the_figure_is_what_a_reader_of_the_release_counts(algorithm: str) -> None:
    frame = table(3)
    share = 1.0 if algorithm == "suppress_records" else 0.2
    release = shoal.anonymize(frame, policy(algorithm, max_suppression=share))
    assert release.loss["classification"] == pytest.approx(metric(release, len(frame)))


@pytest.mark.parametrize("seeds", tables(60, 20))
@pytest.mark.parametrize("max_suppression", [0.0, 0.25])
def test_optimal_finds_what_looking_at_every_node_finds(max_suppression: float, seeds: range) -> None:
    for seed in seeds:
        frame = table(seed)
        found = [
            shoal.anonymize(frame, policy(name, k=2 + seed % 4, max_suppression=max_suppression))
            for name in ("optimal", "exhaustive", "k_optimize")
        ]
        assert found[0].levels == found[1].levels
        assert found[0].loss["classification"] == pytest.approx(found[1].loss["classification"])
        assert found[2].loss["classification"] <= found[0].loss["classification"] + 1e-12
        assert all(release.recoding.proved for release in found)


def test_without_a_label_there_is_nothing_to_predict() -> None:
    with pytest.raises(shoal.ShoalError, match="needs a sensitive column to predict"):
        policy("optimal", label=None)
