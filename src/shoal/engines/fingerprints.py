"""A hash of a table that does not depend on the order of its rows: of its distinct tuples and their counts."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.base import Groups
from shoal.notation import codec
from shoal.tables.frequency import packed


def digest_of_counts(groups: Groups) -> str:
    """Return the SHA-256 of the names, the texts, and the number of records of each tuple."""
    names = sorted(name for name in groups.table.column_names if name != groups.weight)
    coded = [codec.encode_texts(name, groups.table[name]) for name in names]
    digest = hashlib.sha256(b"shoal counts 1\n")
    for name, column in zip(names, coded, strict=True):
        digest.update(json.dumps([name, column.texts]).encode())
    codes = np.column_stack([column.codes + 1 for column in coded]).astype(np.int32)  # a null is 0
    class_of, firsts = group(packed(codes))
    counts = sum_by_class(np.asarray(groups.table[groups.weight]).astype(np.int64), class_of, len(firsts))
    order = np.lexsort(codes[firsts].T[::-1])
    digest.update(np.ascontiguousarray(codes[firsts][order], "<i4").tobytes())
    digest.update(counts[order].astype("<i8").tobytes())
    return digest.hexdigest()
