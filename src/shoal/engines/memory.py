"""How much memory is available, how much this process uses, and how much that leaves for DuckDB."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from pathlib import Path

import pyarrow as pa

from shoal.errors import DataError

WRITING = 2**28  # bytes that a release needs on its way from DuckDB to its file
MIN_BYTES = 2**28  # bytes without which DuckDB cannot even spill, and fails

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_size(text: str) -> int:
    """Parse a size such as 4GB or 500 MiB into bytes."""
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?B)", text.strip().upper())
    if size is None or not (n := int(float(size[1]) * _UNITS.get(size[2], 0))):
        raise DataError("memory: not a size", "write a number and a unit, such as 4GB or 500MB")
    return n


def shortage(limit: int) -> str:
    """Return a note if this limit cannot be met because too much is in use already, otherwise an empty text."""
    if resident() + WRITING + MIN_BYTES <= limit:
        return ""
    return (
        f"more than {limit / 10**9:.1f} GB of memory will be used: the distinct tuples are held in it "
        "(max_tuples in [release] limits them)"
    )


def resident() -> int:
    """Return the memory that this process uses and cannot free; 0 if the system does not report it."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(
        OSError, AttributeError, TypeError
    ):  # glibc keeps freed memory; other libraries have no such call
        ctypes.CDLL(None).malloc_trim(0)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def duckdb_share(memory: int, held_bytes: int) -> int:
    """Return DuckDB's part of ``memory``, of which ``held`` is in use; it exceeds its limit by about a tenth."""
    return max((memory - held_bytes - WRITING) * 7 // 8, min(max(MIN_BYTES, memory // 8), memory // 2))
