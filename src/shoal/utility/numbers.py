"""Information loss of masked numbers, record by record: IL1 and IL1s.

J. M. Mateo-Sanz, J. Domingo-Ferrer, F. Sebé, "Probabilistic information loss measures in confidentiality protection of
continuous microdata", Data Mining and Knowledge Discovery 11(2), 2005; W. E. Yancey, W. E. Winkler, R. H. Creecy,
"Disclosure risk assessment in perturbative microdata protection", 2002.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shoal.engines.data import Data
from shoal.engines.opening import rows_of
from shoal.errors import DataError, no_column
from shoal.hierarchies.spans import standard_deviation
from shoal.masking.masking import numbers_of


def il1(original: Data, masked: Data, columns: Sequence[str]) -> dict[str, float]:
    """``il1``: the mean of |x − x'| / |x| over cells; ``il1s``: of |x − x'| / (√2 · S), S the column's deviation.

    Row i of both tables is the same record. Cells with x = 0 are left out of ``il1``, which would divide by them.
    """
    before, after = rows_of(original), rows_of(masked)
    if before.table.num_rows != after.table.num_rows:
        raise DataError(
            f"the original has {before.table.num_rows} records, but the masked table has {after.table.num_rows}",
            "both must have the same records in the same order",
        )
    for engine, role in ((before, "original"), (after, "masked table")):
        if absent := [name for name in columns if name not in engine.table.column_names]:
            raise no_column(f"the {role}", absent, engine.table.column_names)
    relative, scaled = [], []
    for name in columns:
        x, masked_x = (numbers_of(name, engine.coded(name)) for engine in (before, after))
        difference = np.abs(x - masked_x)
        relative.append(difference[x != 0] / np.abs(x[x != 0]))
        spread = standard_deviation(x)
        scaled.append(difference / (math.sqrt(2) * spread) if spread else np.where(difference > 0, np.inf, 0.0))
    nonzero = np.concatenate(relative) if relative else np.empty(0)
    return {
        "il1": float(nonzero.mean()) if len(nonzero) else 0.0,
        "il1s": float(np.concatenate(scaled).mean()) if scaled else 0.0,
    }
