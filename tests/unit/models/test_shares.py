"""Caps on shares: limited gain, values that may be known, and the largest part that passes, against brute force."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.base import SensitiveModel
from shoal.models.closeness import BasicLikeness, EnhancedLikeness
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.models.shares import LimitedGain
from shoal.models.size import AlphaK
from shoal.models.spread import KEAnonymity
from shoal.notation.codec import encode_texts
from shoal.tables.domain import domain_of
from shoal.tables.frequency import Histogram

TEXTS = ["no", " No", "7", "12", "?", "3"]


def histogram(classes: list[list[str]]) -> Histogram:
    """The histogram of classes of values; a value is listed once for each record."""
    texts = [text for each in classes for text in each]
    coded = encode_texts("d", pa.chunked_array([pa.array(texts, pa.string())]))
    domain, codes = domain_of("d", coded, None)
    class_of = np.repeat(np.arange(len(classes)), [len(each) for each in classes])
    return Histogram.counted(class_of, codes, len(classes), len(domain.texts), domain)


def test_the_gain_of_a_bet_on_one_value():
    # In the whole table three of eight have flu; in the first class two of four: (1/2 − 3/8) / (1 − 3/8) = 1/5.
    found = histogram([["flu", "flu", "gout", "cold"], ["flu", "gout", "gout", "cold"]])
    assert LimitedGain(gain=0.2).score(found) == pytest.approx([1 / 5, 1 / 5])
    assert LimitedGain(gain=0.2).accepts(found).all()  # met exactly
    assert not LimitedGain(gain=0.19).accepts(found).any()


def test_a_harmless_value_may_be_known_in_any_spelling():
    found = histogram([["no", "no", "no"], ["yes", "no", "no"]])
    assert LimitedGain(gain=0.2).accepts(found).tolist() == [False, True]
    assert LimitedGain(gain=0.2, exempt=(" NO",)).accepts(found).tolist() == [True, True]
    assert LimitedGain(gain=0.1, exempt=("No",)).accepts(found).tolist() == [True, False]  # yes: 1/3 for 1/6
    assert AlphaK(alpha=0.4, k=1, exempt=("no",)).accepts(found).tolist() == [True, True]
    assert BasicLikeness(beta=0.5, exempt=("no",)).accepts(found).tolist() == [True, False]


def test_a_common_value_may_be_known():
    found = histogram([["a", "a", "a"], ["a", "a", "b"]])
    assert LimitedGain(gain=0.3).accepts(found).tolist() == [False, True]
    assert LimitedGain(gain=0.3, common=5 / 6).accepts(found).tolist() == [True, True]
    assert LimitedGain(gain=0.3, common=0.9).accepts(found).tolist() == [False, True]


MODELS: list[SensitiveModel] = [
    LimitedGain(gain=0.2),
    LimitedGain(gain=0.3, exempt=("no",)),
    LimitedGain(gain=0.3, common=0.4),
    AlphaK(alpha=0.5, k=1, exempt=("no",)),
    BasicLikeness(beta=1, exempt=("no", "7")),
    EnhancedLikeness(beta=1, common=0.5),
]
VARIED: list[SensitiveModel] = [
    DistinctDiversity(l=2),
    EntropyDiversity(l=1.8),
    RecursiveDiversity(c=2, l=2),
    RecursiveDiversity(c=1.5, l=1),
]
NUMBERS: list[SensitiveModel] = [KEAnonymity(k=2, e=5), KEAnonymity(k=3, e=2), KEAnonymity(k=1, e=0)]
classes = st.lists(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6), min_size=2, max_size=5)


@given(classes)
def test_the_law_of_merging_holds(given: list[list[str]]) -> None:
    """The union of passing classes passes; of an absorbing model, the union of a passing class with any."""
    numbers = [["?" if "o" in text.lower() else text for text in each] for each in given]
    for models, tables in ((MODELS + VARIED, given), (NUMBERS, numbers)):
        found = histogram(tables)
        union = found.merged(np.array([0, 0, *range(1, len(tables) - 1)]), len(tables) - 1)
        for model in models:
            passes = model.accepts(found)
            needed = passes[0] or passes[1] if model.merging == "absorbing" else passes[0] and passes[1]
            assert model.accepts(union)[0] or not needed, model


@given(classes)
def test_no_part_that_passes_is_larger_than_the_bound(given: list[list[str]]) -> None:
    found = histogram(given)
    counts = found.dense(0, found.n_classes)[0].astype(int)
    parts = [part for part in product(*(range(n + 1) for n in counts)) if any(part)]
    entries = [(i, value, n) for i, part in enumerate(parts) for value, n in enumerate(part) if n]
    rows, values, sizes = (np.array(column, np.int64) for column in zip(*entries, strict=True))
    of_parts = Histogram.counted(rows, values.astype(np.int32), len(parts), found.n_values, found.domain, sizes)
    total = np.array([sum(part) for part in parts])
    for model in MODELS + VARIED:
        largest = total[model.accepts(of_parts)].max(initial=0)
        assert model.max_passing_by_column(found, np.array([0]))[0] >= largest - 1e-9, model


def test_unknown_values_and_spellings_add_no_diversity():
    found = histogram([["flu", "Flu", "?"], ["flu", "", "n/a"], ["flu", "gout", "NA"], ["?", "unknown", "not asked"]])
    assert DistinctDiversity(l=2).score(found).tolist() == [1, 1, 2, 0]
    assert DistinctDiversity(l=1).accepts(found).tolist() == [True, True, True, False]
    assert EntropyDiversity(l=2).score(found) == pytest.approx([1, 1, 2, 1])
    assert RecursiveDiversity(c=3, l=2).accepts(found).tolist() == [False, False, True, False]


def test_a_class_of_numbers_needs_a_range():
    found = histogram([["3001", "3002", "3003"], ["3000", "?", "5000"], ["?", "", "?"], ["3000", "5000", "5000"]])
    assert KEAnonymity(k=2, e=1000).score(found).tolist() == [2, 2000, 0, 2000]
    assert KEAnonymity(k=2, e=2000).accepts(found).tolist() == [False, True, False, True]
    assert KEAnonymity(k=3, e=2).accepts(found).tolist() == [True, False, False, False]
