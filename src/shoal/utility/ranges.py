"""Released cells as numbers, for analysis in Python: bounds, midpoints, membership.

All that is read here is what a text says by itself, by the one reader that attacks and checks use too; no policy is
needed. A star, a missing value and a text that is none have no bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import narwhals as nw

from shoal.errors import DataError
from shoal.table.bounds import End, ends
from shoal.table.dates import Dates
from shoal.table.reading import Reader


def read_ranges(cells: Any, *, dates: bool = False) -> Any:
    """Return the first and last value of each released cell and the midpoint, as ``from``, ``to`` and ``mid``.

    Numbers, ranges and sets of numbers are read. An open end is missing.

    Parameters
    ----------
    cells
        A column of pandas, polars or pyarrow, or a list.
    dates
        Read days, months, years and ranges of them, as dates.

    Returns
    -------
    frame or dict of lists
        The columns ``from``, ``to`` and ``mid``, of the same kind as ``cells``.

    Raises
    ------
    DataError
        If ``cells`` is no column.

    Examples
    --------
    >>> import shoal
    >>> shoal.read_ranges(["30-39", "52", "*"])
    {'from': [30.0, 52.0, None], 'to': [39.0, 52.0, None], 'mid': [34.5, 52.0, None]}
    """
    texts = _texts(cells)
    spec = Dates(dates=("day",)) if dates else None
    read = {text: ends(text, spec) for text in set(texts)}
    first, last = ([_plain(read[text][i]) for text in texts] for i in (0, 1))
    middle = [_middle(*read[text]) for text in texts]
    return _frame(cells, {"from": first, "to": last, "mid": middle})


def may_be(cells: Any, value: Any) -> Any:
    """Return whether each released cell may be a value: a range or set that contains it, a mask, or ``*``.

    Parameters
    ----------
    cells
        A column of pandas, polars or pyarrow, or a list.
    value
        The value to look for.

    Returns
    -------
    column or list
        A truth value for each cell, of the same kind as ``cells``; a missing cell is False.

    Raises
    ------
    DataError
        If ``cells`` is no column.

    Examples
    --------
    >>> import shoal
    >>> shoal.may_be(["30-39", "40-49", "*"], 35)
    [True, False, True]
    """
    texts = _texts(cells)
    known = sorted({text for text in texts if text is not None})
    wanted = value.isoformat() if isinstance(value, date) else str(value)
    reader = Reader(known, [wanted], freely=False)
    found = {known[i] for i in (*reader.of([wanted])[0], *reader.everything)}
    answers = [text in found for text in texts]
    return _frame(cells, {"may_be": answers}, only="may_be")


def _texts(cells: Any) -> list[str | None]:
    if isinstance(cells, list | tuple):
        values: Sequence[Any] = cells
    else:
        try:
            values = nw.from_native(cells, series_only=True).to_list()
        except TypeError:
            raise DataError(
                f"cells must be a pandas, polars or pyarrow column, or a list, not {type(cells).__name__}"
            ) from None
    return [None if value is None or value != value else str(value) for value in values]


def _plain(end: End) -> Any:
    return end if end is None or isinstance(end, date) else float(end)


def _middle(first: End, last: End) -> Any:
    if isinstance(first, date) and isinstance(last, date):
        return first + (last - first) / 2
    if isinstance(first, Decimal) and isinstance(last, Decimal):
        return (float(first) + float(last)) / 2
    return None


def _frame(like: Any, columns: dict[str, list[Any]], only: str | None = None) -> Any:
    """Return columns as the kind of frame that ``like`` belongs to, or one of them alone."""
    if isinstance(like, list | tuple):
        return columns if only is None else columns[only]
    library = nw.from_native(like, series_only=True).__native_namespace__()
    if library.__name__ == "pyarrow":
        return library.table(columns) if only is None else library.chunked_array([columns[only]])
    frame = library.DataFrame(columns, index=like.index) if hasattr(like, "index") else library.DataFrame(columns)
    return frame if only is None else frame[only]
