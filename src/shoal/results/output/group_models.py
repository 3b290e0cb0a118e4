"""The regression of each group, from the records and columns that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.engines.grouping import Groupable
from shoal.errors import CannotTellError
from shoal.results.grouping import row_count
from shoal.results.output.few_values import rare_value, rows_about, shares_few_values
from shoal.results.output.fitting import Fit, fitted
from shoal.results.output.request import Key, TableRequest
from shoal.results.output.rules import ModelRule, OutputRules

MAX_RECORDS = 20_000_000
INTERCEPT = "(intercept)"


def models_of(
    rows: Groupable, request: TableRequest, entity: str | None, rules: OutputRules, degrees: int
) -> Iterator[tuple[Key, Fit]]:
    """Fit the model of each group in memory, with only the records and columns that it needs."""
    numbers = {f"x{j}": name for j, name in enumerate(request.on) if name not in request.categories}
    labels = {f"x{j}": name for j, name in enumerate(request.on) if name in request.categories}
    assert request.value is not None
    chosen = {"y": rows.number(request.value).cast("float64")}
    chosen |= {key: rows.number(name).cast("float64") for key, name in numbers.items()}
    chosen |= {key: rows.table[name].cast("string") for key, name in labels.items()}
    chosen |= {f"f{j}": request.feature(name).expression(rows) for j, name in enumerate(request.names)}
    chosen |= {} if entity is None else {"person": rows.table[entity].cast("string")}
    table = rows_about(rows, request, chosen)
    if row_count(rows, table) > MAX_RECORDS:
        raise CannotTellError("there are too many records to fit a regression in memory", "draw a sample of them")
    fetched = rows.fetch(table)
    keys = [*zip(*(fetched[f"f{j}"].to_pylist() for j in range(len(request.names))), strict=True)] or [()] * len(
        fetched
    )
    places: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    columns = {key: np.asarray(fetched[key].combine_chunks(), np.float64) for key in ("y", *numbers)}
    texts = {key: np.array(fetched[key].to_pylist(), object) for key in labels}
    persons = np.arange(len(fetched)) if entity is None else _numbers(fetched["person"].to_pylist())
    for key in sorted(places, key=lambda labels: tuple((label is None, label or "") for label in labels)):
        at = np.array(places[key])
        terms, design, rare_category = [INTERCEPT], [np.ones(len(at))], False
        person = np.unique(persons[at], return_inverse=True)[1]
        for j, name in enumerate(request.on):
            if f"x{j}" in numbers:
                numbers_here = columns[f"x{j}"][at]
                # Few values only in this group are no categories of the ledger, so such a model cannot be judged.
                unjudged = name not in request.few_valued and shares_few_values(len(np.unique(numbers_here)), len(at))
                rare_category |= unjudged or rare_value(numbers_here, person, rules)
                terms.append(name)
                design.append(numbers_here)
                continue
            column = texts[f"x{j}"][at]
            levels = sorted(set(column))
            rare_category |= any(rules.count_fails(len(set(person[column == level]))) for level in levels)
            terms += [f"{name}={level}" for level in levels[1:]]
            design += [(column == level).astype(float) for level in levels[1:]]
        fit = fitted(columns["y"][at], np.column_stack(design), terms, person, rules, degrees)
        yield key, _with_rule(fit, "category") if rare_category else fit


def _with_rule(fit: Fit, rule: ModelRule) -> Fit:
    return Fit(**{**vars(fit), "failed_rules": (*fit.failed_rules, rule)})


def _numbers(texts: Sequence[str | None]) -> NDArray[np.int64]:
    index_of: dict[str | None, int] = {}
    return np.array([index_of.setdefault(text, len(index_of)) for text in texts], np.int64)
