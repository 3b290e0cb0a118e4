"""Columns with few values: a mean of two values is a count, and each value of a regressor is a category.

With two values, 1 and 2 or 1 and 100 as well as 0 and 1, the mean of a group says how many people have which. And where
a regressor has few values, a coefficient is made of the sums of the groups that share one: for two values, intercept
and slope *are* the two means. So few-valued regressors are judged as categories, however they are written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ibis
import numpy as np
from ibis.expr import types as ir
from numpy.typing import NDArray

from shoal.engines.grouping import Groupable
from shoal.results.grouping import row_count
from shoal.results.output.request import TableRequest
from shoal.results.output.rules import OutputRules
from shoal.tables.frequency import Floats

FEW_VALUES = 12  # such as months; beyond, no small group of one value is made out by a coefficient alone

MAX_OTHER_SHARE = 0.1  # of the records of a column of two values, those with another one at most


def rows_about(rows: Groupable, request: TableRequest, columns: dict[str, Any]) -> ir.Table:
    """Return these columns of the records that a table is about."""
    conditions = {f"i{j}": feature.expression(rows) for j, feature in enumerate(request.insides)}
    table = rows.table.select(**columns, **conditions)
    for name in conditions:
        table = table.filter(table[name] == "1")
    return table.select(*columns)


def two_valued(rows: Groupable, request: TableRequest, rules: OutputRules) -> bool:
    """Return whether the records of a table have two values in all; a few records with others make no difference.

    A code such as 9 for "unknown" beside 1 and 2 must not turn counts into harmless means.
    """
    if request.value is None:
        return False
    table = rows_about(rows, request, {"v": rows.number(request.value).cast("float64")})
    by_value = table.group_by("v").agg(n=table.count())
    common = rows.fetch(by_value.order_by([ibis.desc("n"), "v"]).limit(2))["n"].to_pylist()
    everything = row_count(rows, table)
    n_others = everything - sum(common)
    if len(common) < 2 or everything < rules.min_count:  # so few are hidden anyhow
        return False
    return bool(n_others < rules.min_count and n_others <= MAX_OTHER_SHARE * everything)


def with_few_valued(rows: Groupable, request: TableRequest) -> TableRequest:
    """Return a regression with the columns of numbers that have few values, which are judged as categories."""
    numeric = [name for name in request.on if name not in request.categories]
    if not numeric:
        return request
    table = rows_about(rows, request, {f"x{j}": rows.number(name) for j, name in enumerate(numeric)})
    counted = {f"x{j}": table[f"x{j}"].nunique() for j in range(len(numeric))}
    counts = rows.fetch(table.agg(records=table.count(), **counted)).to_pylist()[0]
    few_valued = [
        name for j, name in enumerate(numeric) if shares_few_values(int(counts[f"x{j}"]), int(counts["records"]))
    ]
    return replace(request, few_valued=tuple(few_valued))


def shares_few_values(n_values: int, n_records: int) -> bool:
    """Return whether a column has few values, which records share."""
    return n_values <= FEW_VALUES and 2 * n_values <= n_records


def rare_value(values: Floats, person: NDArray[np.int64], rules: OutputRules) -> bool:
    """Return whether too few persons share one of the few values of a regressor.

    >>> rare_value(np.array([0.0] * 50 + [1.0] * 9), np.arange(59), OutputRules())
    True
    """
    distinct, value_of_record = np.unique(values, return_inverse=True)
    if not shares_few_values(len(distinct), len(values)):
        return False
    pairs = np.unique(np.column_stack([value_of_record, person]), axis=0)
    return any(rules.count_fails(int(n)) for n in np.bincount(pairs[:, 0]))
