"""A folder of Parquet files as one table: every file has the same columns, or the folder is rejected.

A reader that takes the schema of the first file casts the others to it, or leaves out what it lacks: rows would be
counted that are not the published ones. A subfolder named ``zip=02138`` is a column that no file contains, of a type
that each reader guesses.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from shoal.errors import DataError

NUMBERED = re.compile(r"part-[0-9]+([-._][0-9a-f-]*)?(-c[0-9]+)?(\.[a-z]+)?\.parquet")  # names without a meaning


def parquet_parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder in the order of their names; reject subfolders that are columns."""
    parts = [path for path in _files(folder) if path.suffix == ".parquet"]
    require_no_partitions(str(path.relative_to(folder)) for path in parts)
    return parts


def other_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are not read."""
    return [path for path in _files(folder) if path.suffix != ".parquet" and not _is_of_writers(path)]


def _is_of_writers(path: Path) -> bool:
    """Return whether a file is a mark of Spark, or a checksum: 4 bytes for each 512 of the file that it checks."""
    if path.name == "_SUCCESS":
        return path.stat().st_size == 0
    summed = path.with_name(path.name[1:].removesuffix(".crc"))
    if not (path.name.startswith(".") and path.suffix == ".crc" and summed.is_file()):
        return False
    return path.stat().st_size == 8 + 4 * -(-summed.stat().st_size // 512)


def named_parts(folder: Path) -> list[Path]:
    """Return the Parquet files whose names are not just numbers: a name may say something about its rows."""
    parts = (path for path in _files(folder) if path.suffix == ".parquet")
    return [path for path in parts if path.parent != folder or not NUMBERED.fullmatch(path.name)]


def part_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a folder, by its path within the folder."""
    digests = {}
    for path in _files(folder):
        with path.open("rb") as file:
            digests[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def require_no_partitions(names: Iterable[str]) -> None:
    """Reject files in subfolders named ``column=value``."""
    n = sum(any("=" in part for part in re.split(r"[\\/]", name)[:-1]) for name in names)
    if n:
        raise DataError(
            f"{n} files are in subfolders named column=value, a column that the files themselves do not contain",
            "write the table with this column in the files, without partitions",
        )


def require_equal_schemas(schemas: Sequence[tuple[str, pa.Schema]]) -> None:
    """Reject files whose columns differ in names, order or types: one of them would be read as something else."""
    if not schemas:
        return
    first, expected = schemas[0][0], _plain_fields(schemas[0][1])
    for name, schema in schemas[1:]:
        fields = _plain_fields(schema)
        if [column for column, _ in fields] != [column for column, _ in expected]:
            raise DataError(
                f"the files of the folder have different columns: {len(fields)} in {name}, {len(expected)} in {first}, "
                "with other names or in another order",
                "write all files with the same columns",
            )
        for (column, kind), (_, other) in zip(fields, expected, strict=True):
            if kind != other:
                raise DataError(
                    f"column {column!r} is of type {kind} in {name} and of type {other} in {first}",
                    "write all files with the same types: read as one, values would change",
                )


def _plain_fields(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, str(_plain_kind(field.type))) for field in schema]


def _plain_kind(kind: pa.DataType) -> pa.DataType:
    """Return the type without how it is stored: dictionaries and large texts have the values of the others."""
    if pa.types.is_dictionary(kind):
        return _plain_kind(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def _files(folder: Path) -> list[Path]:
    try:
        paths = [Path(root, name) for root, _, names in os.walk(folder, onerror=_raised) for name in names]
    except OSError as error:  # a subfolder may be unreadable, or deleted in the meantime
        raise DataError(f"{folder}: its files cannot be listed ({error.strerror})") from None
    return sorted(paths)


def _raised(error: OSError) -> None:
    raise error
