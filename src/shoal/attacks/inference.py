"""Inference: a model trained on the release predicts people's sensitive values from what is known about them.

The model is naive Bayes over the released texts, corrected by the records that fit the person: alone it generalizes
where few fit, and where many do they decide. Needs no library, and is the same on every machine.
Bound  the greatest share of a value in a class, where each person fits one class: no guess beats the most frequent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shoal.attacks.candidates import Secret
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, value_risk
from shoal.tables.frequency import RowNumbers

BLOCK = 2**22  # scores of kinds and values computed together
MOST_VALUES = 256  # the most frequent values, of which the model learns; the others are left to the records that fit
LARGEST = 2**24  # texts of a column times values


def inference(secret: Secret, outside: Secret | None = None) -> Risk:
    """Measure how often the predicted value is the person's own."""
    return value_risk(
        "inference",
        secret,
        outside,
        lambda people: people.scored_by_choice(_scored),
        lambda scored: (
            f"A model trained on the release predicts the {secret.column} of {scored.success} of the targets "
            f"correctly; always guessing the most frequent value is correct for {percent_words(scored.control_share)}."
        ),
        _greatest_share(secret) if (np.diff(secret.view.fits.indptr) <= 1).all() else None,
    )


def _scored(secret: Secret) -> Scored:
    guess = predicted(secret)[secret.view.kind_of]
    credits = (guess == secret.truth).astype(np.float64)
    common = secret.truth == int(secret.whole.argmax())
    blind = common.astype(np.float64)
    return Scored(credits, blind, "always the most frequent value", classes=secret.view.ties)


def predicted(secret: Secret) -> RowNumbers:
    """Return for each kind the most likely value according to the model.

    The model counts as one more record among those that fit, so where any do, one of their values is the answer.
    """
    view, matching = secret.view, secret.matching
    values = np.argsort(-secret.whole, kind="stable")[:MOST_VALUES]
    column_of = np.full(len(secret.values), -1, np.int64)
    column_of[values] = np.arange(len(values))
    likely = _likelihoods(secret, values)
    prior = np.log(np.maximum(secret.shares[values], 1e-300))
    score = matching.data.astype(np.float64)
    alone = np.full(matching.shape[0], values[0], np.int64)
    step = max(1, BLOCK // len(values))
    for first in range(0, len(view.kinds), step):
        kinds = view.kinds[first : first + step]
        logs: NDArray[np.float64] = np.tile(prior, (len(kinds), 1))
        for j, table in likely.items():
            logs += table[kinds[:, j]]
        belief = np.exp(logs - logs.max(axis=1, keepdims=True))
        belief /= belief.sum(axis=1, keepdims=True)
        alone[first : first + len(kinds)] = values[belief.argmax(axis=1)]
        entries = slice(matching.indptr[first], matching.indptr[first + len(kinds)])
        row = np.repeat(np.arange(len(kinds)), np.diff(matching.indptr[first : first + len(kinds) + 1]))
        of_entry = column_of[matching.indices[entries]]
        score[entries] += np.where(of_entry >= 0, belief[row, of_entry], 0.0)
    best = secret.best(score)
    return np.where(best < 0, alone, best)


def _likelihoods(secret: Secret, values: RowNumbers) -> dict[int, NDArray[np.float64]]:
    """Per column (kinds of the column, values): log P(a text covering the kind | value), with Laplace smoothing.

    A column with a text for nearly everybody generalizes nothing and is left to the records that fit.
    """
    view, out = secret.view, {}
    column_of = np.full(len(secret.values), -1, np.int64)
    column_of[values] = np.arange(len(values))
    of_record = column_of[secret.of_record]
    modelled = of_record >= 0
    for j, column in enumerate(view.columns):
        if column.n_texts * len(values) > LARGEST or column.n_kinds * len(values) > LARGEST:
            continue
        keys = view.tuples[view.tuple_of[modelled], j] * len(values) + of_record[modelled]
        counts = np.bincount(keys, minlength=column.n_texts * len(values)).reshape(column.n_texts, len(values))
        likelihood = (counts + 1) / (secret.whole[values] + column.n_texts)
        stands = csr_array(
            (np.ones(len(column.kinds)), (column.kinds, column.texts)), shape=(column.n_kinds, column.n_texts)
        )
        out[j] = np.log(stands @ likelihood)
    return out


def _greatest_share(secret: Secret) -> float:
    table = secret.of_tuple
    return float((table.data / np.repeat(secret.view.counts, np.diff(table.indptr))).max())
