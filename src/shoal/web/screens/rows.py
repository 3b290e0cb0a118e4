"""Records before and after, and the class that a record is in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shoal.engines.base import Rows
from shoal.release import Release
from shoal.web.pages import get, pages_of, run_of
from shoal.web.prepared import release_of

PAGE = 20  # records before and after on one page
MATES = 50  # records of a class that are shown


def has_rows(release: Release) -> bool:
    """Whether it is known which record was made of which."""
    rows = release.rows
    return isinstance(rows, Rows) and rows.sources is not None


def _rows(request: Request) -> Response:
    """Records before and after, and of one the class that it is in now."""
    pages, run = pages_of(request), run_of(request)
    release = release_of(run)
    rows = release.rows
    if not isinstance(rows, Rows) or rows.sources is None:
        raise HTTPException(404)
    names = list(release.policy.quasi)
    first = _whole(request, "first")
    chosen = _whole(request, "record") if "record" in request.query_params else None
    if chosen is not None and chosen >= rows.n_records:
        raise HTTPException(404)
    members = np.arange(rows.n_records) if chosen is None else _class_of(rows, names, chosen)
    n = len(members)
    first = min(first, max(0, n - 1))
    positions = members[first : first + (PAGE if chosen is None else MATES)]
    if chosen is not None and chosen not in positions:  # the record itself is always there
        positions = np.concatenate([[chosen], positions[:-1]])
    before = release.engine.table.select(names).take(rows.sources[positions]).to_pylist()
    after = rows.table.select(names).take(positions).to_pylist()
    records = [
        {"place": int(position), "cells": [(_cell(original[name]), _cell(released[name])) for name in names]}
        for position, original, released in zip(positions, before, after, strict=True)
    ]
    return pages.render(
        "rows.html",
        "explore",
        run=run,
        names=names,
        records=records,
        chosen=chosen,
        first=first,
        page=PAGE,
        n=n,
    )


def _class_of(rows: Rows, names: list[str], record: int) -> NDArray[np.int64]:
    """The released records that have the same values as one of them."""
    in_class = np.ones(rows.n_records, np.bool_)
    for name in names:
        column = rows.table[name]
        value = column[record].as_py()
        equal = column.is_null() if value is None else pc.fill_null(pc.equal(column, value), False)
        in_class &= np.asarray(equal).astype(np.bool_)
    return np.flatnonzero(in_class)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _whole(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    return int(text) if text.isdigit() and len(text) < 12 else 0


ROUTES = [get("/runs/{run:int}/rows", _rows)]
