"""Released cells as numbers, for analysis in Python: bounds, midpoints, members, and a codebook of all texts.

All that is read here is what a text says by itself, by the one reader that attacks and checks use too; no policy is
needed. A star, a missing value and a text that is none have no bounds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.engines.opening import rows_of, tallied_release
from shoal.errors import DataError, no_column
from shoal.hierarchies.bounds import End, ends
from shoal.hierarchies.dates import Dates
from shoal.hierarchies.reader import Reader
from shoal.notation.forms import is_star
from shoal.notation.labels import read_set


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
    present = sorted({text for text in texts if text is not None})
    wanted = value.isoformat() if isinstance(value, date) else str(value)
    reader = Reader(present, [wanted], freely=False)
    covering = {present[i] for i in (*reader.covering([wanted])[0], *reader.everything)}
    answers = [text in covering for text in texts]
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


# ── sets, and what each text means ───────────────────────────────────────────────────────────────────────────


def read_sets(cells: Any, *, members: Sequence[Any] = (), dummies: bool = False) -> Any:
    """Return a column for each member, with the share of it in each released cell.

    A value has a share of 1, each of n members of a set 1/n, as if they were equally likely, and ``*`` stands for all
    members. A missing cell has missing shares. Other texts, such as ranges, are members themselves.

    Parameters
    ----------
    cells
        A column of pandas, polars or pyarrow, or a list, which gives a dict of lists.
    members
        The members that get a column; by default all that the cells name.
    dummies
        1 for every member that a cell may be and 0 otherwise, instead of shares.

    Returns
    -------
    Any
        A table of the same kind as ``cells``, with a column for each member.

    Raises
    ------
    DataError
        If ``cells`` is not a column or a list.

    Examples
    --------
    >>> import shoal
    >>> shoal.read_sets(["{Asian, Black}", "White", "*"], members=["Asian", "Black", "White"], dummies=True)
    {'Asian': [1.0, 0.0, 1.0], 'Black': [1.0, 0.0, 1.0], 'White': [0.0, 1.0, 1.0]}
    """
    texts = _texts(cells)
    named = {text: read_set(text) or (text,) for text in set(texts) if text is not None and not is_star(text)}
    every = list(map(str, members)) or sorted({member for covered in named.values() for member in covered})
    shares: dict[str | None, dict[str, float]] = {}
    for text in set(texts) - {None}:
        covered = [member for member in named.get(text, every) if member in every] if text is not None else []
        shares[text] = {member: 1.0 if dummies else 1 / len(covered) for member in covered}
    columns = {member: [None if text is None else shares[text].get(member, 0.0) for text in texts] for member in every}
    return _frame(cells, columns)


def codebook(release: Data | Released, columns: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return a line for each text of the quasi-identifiers of a release: what it stands for, and in how many records.

    ``kind`` is ``value``, ``range``, ``set``, ``any value`` for ``*``, ``missing``, or ``label`` for other texts.
    Ranges have ``from`` and ``to``, sets their ``members``.

    Parameters
    ----------
    release
        A release, or any table.
    columns
        The columns to list; by default the quasi-identifiers of a release.

    Returns
    -------
    dict[str, list[Any]]
        The lines by column: ``column``, ``text``, ``kind``, ``from``, ``to``, ``members`` and ``records``.

    Raises
    ------
    DataError
        If a table comes without ``columns``, or lacks one of them.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> lines = shoal.codebook(pa.table({"age": ["30-39", "52", "30-39"]}), ["age"])
    >>> lines["text"], lines["kind"], lines["from"], lines["records"]
    (['30-39', '52'], ['range', 'value'], [30.0, 52.0], [2, 1])
    """
    names = columns or (release.policy.quasi if isinstance(release, Released) else ())
    if not names:
        raise DataError("codebook: which columns?", "name them, or pass a release")
    rows = (tallied_release(release.rows) if isinstance(release, Released) else None) or rows_of(release)
    if absent := [name for name in names if name not in rows.columns]:
        raise no_column("the table", absent, rows.columns)
    lines: dict[str, list[Any]] = {
        field: [] for field in ("column", "text", "kind", "from", "to", "members", "records")
    }
    for name in names:
        coded = rows.coded(name)
        counts = np.bincount(coded.codes + 1, rows.weights, len(coded.texts) + 1).astype(np.int64)
        for text, n in zip((None, *coded.texts), counts.tolist(), strict=True):
            if n:
                first, last = _ends(text)
                members = None if text is None else read_set(text)
                line = (name, text, _kind(text, first, last), _plain(first), _plain(last), members and list(members), n)
                for field, cell in zip(lines, line, strict=True):
                    lines[field].append(cell)
    return lines


def _ends(text: str | None) -> tuple[End, End]:
    """Return the ends of a text as numbers or, where it has none, as days."""
    numbers = ends(text)
    return numbers if numbers != (None, None) else ends(text, Dates(dates=("day",)))


def _kind(text: str | None, first: End, last: End) -> str:
    if text is None:
        return "missing"
    if is_star(text):
        return "any value"
    if read_set(text) is not None:
        return "set"
    if first is None and last is None:
        return "label"
    return "value" if first == last else "range"


def codebook_text(release: Released) -> str:
    """Return the codebook as a CSV file; members are separated by vertical bars."""
    lines = codebook(release)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(lines)
    for line in zip(*lines.values(), strict=True):
        writer.writerow([" | ".join(cell) if isinstance(cell, list) else cell for cell in line])
    return text.getvalue()
