"""A classifier trained on the release and tested on originals, compared with one trained on the original.

What learns must see what it is tested on, originals: so each released cell is replaced by one of the values that it may
stand for, drawn with equal chance. Needs scikit-learn: ``pip install 'shoal[learn]'``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.engines.opening import rows_of
from shoal.errors import PolicyError, no_column
from shoal.policy import Policy, PolicySource, policy_of
from shoal.utility.reading import ColumnPair, Pair


def classification(
    original: Data,
    release: Data | Released,
    policy: PolicySource,
    *,
    label: str | None = None,
    test: Data | None = None,
    model: Any = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure how well classifiers predict the ``label`` of originals: accuracy before and after.

    ``label`` is a sensitive column, by default ``release.label`` of the policy. ``test`` holds originals that are not
    in the release; without it the original itself is tested on, which flatters both classifiers alike. ``model`` is
    any classifier of scikit-learn, by default a logistic regression.
    """
    policy = policy_of(policy)
    label = label or policy.release.label
    if label is None:
        raise PolicyError("label: specify the sensitive column to predict", "set release.label in the policy")
    if label not in policy.sensitive:
        raise PolicyError(f"label: {label!r} is not a sensitive column of the policy")
    pair = Pair.from_tables(original, release, policy, policy.quasi)
    labels = [_labels(data, label, policy) for data in (original, release)]
    rows = [column.original for column in pair.columns]
    tested, truth = _features(pair, rows), labels[0]
    if test is not None:
        engine = rows_of(test, policy)
        if absent := [name for name in (*policy.quasi, label) if name not in engine.table.column_names]:
            raise no_column("the test table", absent, engine.table.column_names)
        test_pair = Pair.from_tables(test, release, policy, policy.quasi)
        tested = _features(pair, [_leaves(a, b) for a, b in zip(pair.columns, test_pair.columns, strict=True)])
        truth = _labels(test, label, policy)
    draw = np.random.default_rng(seed)
    drawn = [_drawn(column, draw) for column in pair.columns]
    before = _accuracy(model, seed, _features(pair, rows), labels[0], tested, truth)
    after = _accuracy(model, seed, _features(pair, drawn), labels[1], tested, truth)
    values, counts = np.unique(labels[0], return_counts=True)
    return {
        "label": label,
        "held_out": test is not None,
        "tested": len(truth),
        "baseline": float((truth == values[counts.argmax()]).mean()),  # always the most frequent of the original
        "before": before,
        "after": after,
        "unknown": pair.unknown,
    }


def _labels(data: Data | Released, label: str, policy: Policy) -> Any:
    engine = rows_of(data, policy)
    if label not in engine.table.column_names:
        raise no_column("a table", [label], engine.table.column_names)
    coded = engine.coded(label)
    return np.array(["" if code < 0 else f"={coded.texts[code]}" for code in coded.codes.tolist()])


def _leaves(training: ColumnPair, other: ColumnPair) -> Any:
    """Return the leaves of another table's records among those of the original; −1 for a new value."""
    leaf_of = {text: leaf for leaf, text in enumerate(training.hierarchy.leaves)}
    return np.array([leaf_of.get(text, -1) for text in other.hierarchy.leaves], np.int64)[other.original]


def _drawn(column: ColumnPair, draw: np.random.Generator) -> Any:
    """Draw for each released record one of the leaves that its cell covers."""
    starts = column.masses.indptr
    lengths = np.diff(starts)[column.released]
    chosen = np.minimum((draw.random(len(lengths)) * lengths).astype(np.int64), lengths - 1)
    return column.masses.indices[starts[column.released] + chosen]


def _features(pair: Pair, leaves: list[Any]) -> csr_array:
    """Encode records, given by their leaves in each column, as rows of features."""
    blocks = []
    for column, column_leaves in zip(pair.columns, leaves, strict=True):
        if column.numbers is None:
            blocks.append(_indicators(column_leaves, column.n_leaves))
            continue
        values = column.numbers[column.original]
        mean, spread = float(values.mean()), float(values.std()) or 1.0
        numbers = np.append(column.numbers, mean)  # a value that the original does not have, −1, is the mean
        blocks.append(csr_array(((numbers[column_leaves] - mean) / spread)[:, None]))
    return csr_array(hstack(blocks))


def _indicators(leaves: Any, n_leaves: int) -> csr_array:
    """Encode the leaf of each record as a one; a value that the original does not have is a row of zeros."""
    present = leaves >= 0
    starts = np.concatenate([[0], np.cumsum(present)])
    return csr_array((np.ones(int(present.sum())), leaves[present], starts), shape=(len(leaves), n_leaves))


def _accuracy(model: Any, seed: int, features: csr_array, labels: Any, tested: csr_array, truth: Any) -> float:
    values = np.unique(labels)
    if len(values) == 1:  # nothing to learn
        return float((truth == values[0]).mean())
    try:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise PolicyError("a classifier needs scikit-learn", "python -m pip install 'shoal[learn]'") from None
    learner = LogisticRegression(max_iter=300, random_state=seed) if model is None else clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged shows in its accuracy
        learner.fit(features, labels)
    return float((learner.predict(tested) == truth).mean())
