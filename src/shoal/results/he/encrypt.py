"""The owner of the data encrypts columns of numbers with the public key; bounds and decimals stay readable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.grouping import groupable
from shoal.errors import DataError, MissingValueError, PolicyError
from shoal.results.he.computation import MAX_DECIMALS, NumberColumn, Packing
from shoal.results.he.container import damaged, read_container, write_container
from shoal.results.he.keys import EncryptionKey, loaded_key
from shoal.results.he.parameters import LARGEST, EncryptionParameters
from shoal.results.smc.local import as_text, exact_fraction


@dataclass(frozen=True, eq=False)
class EncryptedTable:
    """Encrypted columns; their names, bounds and decimals, and the number of rows, can be read by everybody."""

    key: str  # the identity of the key pair
    parameters: EncryptionParameters
    columns: Mapping[str, NumberColumn]
    n_rows: int
    ordered: bool  # whether rows are in the order of a file or frame; a database has none
    chunks: Mapping[str, list[bytes]] = field(repr=False)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the encrypted table to a file."""
        header = {
            "kind": "table",
            "key": self.key,
            "parameters": self.parameters.as_dict(),
            "columns": [column.as_dict() for column in self.columns.values()],
            "rows": self.n_rows,
            "ordered": self.ordered,
        }
        return write_container(path, header, [part for parts in self.chunks.values() for part in parts], force=force)

    @classmethod
    def load(cls, path: str | Path) -> EncryptedTable:
        """Read an encrypted table; this needs no key."""
        header, parts = read_container(path, "table")
        with damaged(path):
            parameters = EncryptionParameters.read(header["parameters"])
            columns = {column.name: column for column in map(NumberColumn.read, header["columns"])}
            n_rows, n = int(header["rows"]), parameters.n_chunks(int(header["rows"]))
            if len(parts) != n * len(columns) or n_rows < 1:
                raise ValueError
            chunks = {name: parts[i * n : (i + 1) * n] for i, name in enumerate(columns)}
            return cls(str(header["key"]), parameters, columns, n_rows, header["ordered"] is True, chunks)


def encrypt(
    data: Data | Engine,
    key: EncryptionKey | str | Path,
    *,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    decimals: Mapping[str, int] | None = None,
    indicators: Sequence[tuple[str, Any]] = (),
    skip_missing: bool = False,
) -> EncryptedTable:
    """Encrypt columns of a table with the public key.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table.
    key
        The public key, or its file.
    bounds
        For each column to encrypt, the least and the largest plausible value; bounds are readable in the result.
    decimals
        For each column, how many decimals its values have, for the exact scheme.
    indicators
        Pairs of a column and a value: a column that is 1 where it has the value and 0 elsewhere, to count rows.
    skip_missing
        Leave out rows without a value in one of the columns, instead of refusing them.

    Returns
    -------
    EncryptedTable
        The encrypted columns, to be saved or computed with.

    Raises
    ------
    PolicyError
        If bounds or decimals are not valid, or numbers do not fit into the scheme.
    DataError
        If a column is absent, or has a value that is missing, no number or out of its bounds.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from shoal import he
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     secret, public = he.make_key_pair(f"{folder}/hospital")
    ...     table = he.encrypt(pa.table({"age": [31, 34, 40]}), public, bounds={"age": (0, 120)})
    ...     result = he.compute(table, public, mean=["age"])
    ...     he.decrypt(result, secret).figures
    {'mean of age': 35}
    """
    public = loaded_key(key)
    sources = _sources(public.parameters, bounds or {}, decimals or {}, indicators)
    columns = {source.column.name: source.column for source in sources}
    names = dict.fromkeys(source.name for source in sources)
    rows = groupable(data)
    rows.require([*names])
    table, ordered = rows.select([*names])
    if not len(table):
        raise DataError("the table has no rows")

    present = np.ones(len(table), bool)
    numbers: dict[str, list[Any]] = {}
    for source in sources:
        column_numbers = _distinct(table[source.name], source.number)
        numbers[source.column.name] = column_numbers
        present &= np.array([number is not None for number in column_numbers])
    if (missing := int((~present).sum())) and not skip_missing:
        raise MissingValueError(
            f"{missing} of {len(table)} rows have no value in one of the columns {', '.join(map(repr, names))}",
            "use skip_missing to leave them out",
            option="--skip-missing",
        )
    row_numbers = {
        name: [n for n, complete in zip(column_numbers, present, strict=True) if complete]
        for name, column_numbers in numbers.items()
    }
    n_rows = int(present.sum())
    if not n_rows:
        raise DataError("no row has a value in all columns")
    for name, column_numbers in row_numbers.items():
        _require_bounds(columns[name], column_numbers, public.parameters)
    chunks = {name: _chunks(public, columns[name], column_numbers) for name, column_numbers in row_numbers.items()}
    return EncryptedTable(public.identity, public.parameters, columns, n_rows, ordered, chunks)


@dataclass(frozen=True)
class _EncryptedCells:
    """How the cells of a column of the table become numbers: its own values, or 1 where it has the ``value``."""

    name: str
    column: NumberColumn
    exact: bool
    value: str | None = None

    def number(self, cell: Any) -> int | float | None:
        """Return a cell as it is encrypted; None if it is missing."""
        text = as_text(cell)
        if text == "":
            return None
        if self.value is not None:
            return int(text == self.value) if self.exact else float(text == self.value)
        try:
            number = exact_fraction(cell)
            if not self.exact:
                return float(number)
        except (ValueError, ArithmeticError):
            message = f"column {self.name!r} has values that are not numbers"
            raise DataError(message, "only numbers can be encrypted") from None
        units = number * self.column.scale
        if units.denominator > 1:
            raise DataError(
                f"column {self.name!r} has values with more than {self.column.decimals} decimals",
                "state how many it has, or use keys of the scheme ckks",
                option=f"--decimals {self.name}=2",
            )
        return int(units)


def _sources(
    parameters: EncryptionParameters,
    bounds: Mapping[str, tuple[Any, Any]],
    decimals: Mapping[str, int],
    indicators: Sequence[tuple[str, Any]],
) -> list[_EncryptedCells]:
    """Return the columns to encrypt, or raise an error that names what is wrong with their bounds."""
    if not bounds and not indicators:
        hint = "name them with their bounds, such as age from 0 to 120"
        raise PolicyError("no columns to encrypt", hint, option="--bounds age=0:120")
    if unknown := [name for name in decimals if name not in bounds]:
        raise PolicyError(f"decimals for {', '.join(map(repr, unknown))}, which has no bounds")
    if decimals and not parameters.exact:
        raise PolicyError("decimals are for keys of the scheme bfv; ckks takes numbers as they are")
    sources = []
    for name, (low, high) in bounds.items():
        try:
            column = NumberColumn(name, exact_fraction(low), exact_fraction(high), int(decimals.get(name, 0)))
        except (ValueError, ArithmeticError):
            raise PolicyError(f"bounds of {name!r} must be numbers") from None
        if column.low > column.high or not 0 <= column.decimals <= MAX_DECIMALS:
            raise PolicyError(
                f"bounds or decimals of {name!r} are not valid", f"least:largest, and 0 to {MAX_DECIMALS} decimals"
            )
        max_rows = parameters.plain_modulus / 2 if parameters.exact else LARGEST
        if column.magnitude >= max_rows:
            message = f"bounds of {name!r} are too wide for this scheme"
            raise PolicyError(message, "use narrower bounds or fewer decimals")
        sources.append(_EncryptedCells(name, column, parameters.exact))
    for name, value in indicators:
        text = as_text(value)
        sources.append(
            _EncryptedCells(name, NumberColumn(f"{name}={text}", Fraction(0), Fraction(1)), parameters.exact, text)
        )
    if len({source.column.name for source in sources}) < len(sources):
        raise PolicyError("two of the columns to encrypt have the same name")
    return sources


def _distinct(cells: Any, convert: Callable[[Any], int | float | None]) -> list[int | float | None]:
    """Convert a column of Arrow, each distinct value once."""
    coded = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    positions = [convert(value) for value in coded.dictionary.to_pylist()]
    return [None if code is None else positions[code] for code in coded.indices.to_pylist()]


def _require_bounds(column: NumberColumn, cells: list[Any], parameters: EncryptionParameters) -> None:
    scale = column.scale if parameters.exact else 1
    low, high = column.low * scale, column.high * scale
    if outside := sum(not low <= number <= high for number in cells):
        raise DataError(
            f"column {column.name!r}: {outside} of {len(cells)} rows are out of its bounds",
            "correct them, or widen the bounds",
        )


def _chunks(key: EncryptionKey, column: NumberColumn, cells: list[Any]) -> list[bytes]:
    parameters = key.parameters
    probes: list[Any] = column.probes if parameters.exact else [float(n) for n in column.probes]
    chunks = []
    for start in range(0, len(cells), parameters.rows):
        part = cells[start : start + parameters.rows]
        padding = [type(probes[0])(0)] * (parameters.rows - len(part))
        chunks.append(key.encrypted([*part, *padding, *probes]).serialize())
    return chunks


def packing_of(tables: list[EncryptedTable]) -> Packing:
    """Return the common columns of tables that are computed on together."""
    first = tables[0]
    for table in tables[1:]:
        if table.columns != first.columns:
            raise PolicyError(
                "the tables were encrypted with different columns, bounds or decimals", "encrypt them alike"
            )
    return Packing(first.parameters, first.columns, tuple(table.n_rows for table in tables))
