"""Number equal keys, and sum what belongs to the same number.

As in all modules of compiled loops, arrays go in and come out, and no objects; each loop has a NumPy equivalent in its
test. The arrays that a loop fills are made before it is called: a loop that makes them takes twice as long to compile.
"""

from __future__ import annotations

import numpy as np

from shoal.compiled.arrays import Ints, Words
from shoal.compiled.jit import compiled_when_long

MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing spreads packed keys evenly


def group(keys: Words) -> tuple[Ints, Ints]:
    """Number equal keys alike, by first appearance; return the class of each key, and where each class starts."""
    bits = slot_bits(len(keys))
    slots = np.full(1 << bits, -1, np.int64)
    class_of, firsts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    n_classes = _number_keys(keys, bits, slots, class_of, firsts)
    return class_of, firsts[:n_classes].copy()


def slot_bits(n: int) -> int:
    """Return the bits of a hash table's slots: at least twice as many as there are keys."""
    return max(4, (2 * n - 1).bit_length())


@compiled_when_long(lambda keys, *_: 3 * len(keys))
def _number_keys(keys: Words, bits: int, slots: Ints, class_of: Ints, firsts: Ints) -> int:
    """Apply ``group``; return the number of classes. ``slots``, 2 to the power of ``bits``, are −1."""
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    n_classes = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        h = np.int64((key * MIX) >> shift)
        while True:
            c = slots[h]
            if c < 0:
                slots[h] = n_classes
                firsts[n_classes] = i
                class_of[i] = n_classes
                n_classes += 1
                break
            if keys[firsts[c]] == key:
                class_of[i] = c
                break
            h = (h + 1) & mask
    return n_classes


def sum_by_class(values: Ints, class_of: Ints, n_classes: int) -> Ints:
    """Sum the ``values`` that belong to the same class."""
    out = np.zeros(n_classes, np.int64)
    _add_by_class(values, class_of, out)
    return out


@compiled_when_long(lambda values, *_: len(values))
def _add_by_class(values: Ints, class_of: Ints, out: Ints) -> None:
    for i in range(values.shape[0]):
        out[class_of[i]] += values[i]
