"""A cache of columns as attacks, stories and linkage read them, which is most of the work of an attack.

It lives only within ``shared_reads``. Entries are keyed by a hash of the texts that were read, so equal columns of
different tables share one, and no text outlives its table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from shoal.notation.codec import Coded, encode_texts
from shoal.policy import Policy

Read = TypeVar("Read")

_cache: ContextVar[dict[Hashable, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def shared_reads() -> Iterator[None]:
    """Keep what is read of columns until the end of the outermost of these blocks."""
    if _cache.get() is not None:
        yield
        return
    mark = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(mark)


def cached_read(read: Callable[[], Read], key: Callable[[], Hashable]) -> Read:
    """Return what ``read`` returned for the same key, or call it."""
    cache = _cache.get()
    if cache is None:
        return read()
    cache_key = key()
    if cache_key not in cache:
        cache[cache_key] = read()
    return cache[cache_key]  # type: ignore[no-any-return]


def encoded_once(name: str, column: pa.ChunkedArray) -> Coded:
    """Encode a column, cached by the addresses of its Arrow buffers, which the cache keeps alive."""
    if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):  # which lie in further memory
        return encode_texts(name, column)
    address = tuple(
        (chunk.offset, len(chunk), *(0 if part is None else part.address for part in chunk.buffers()))
        for chunk in column.chunks
    )
    return cached_read(
        lambda: (column, encode_texts(name, column)), lambda: ("codes", name, str(column.type), address)
    )[1]


def texts_key(texts: Sequence[str]) -> bytes:
    """Return a hash of texts in their order."""
    digest = hashlib.sha256(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
    digest.update("".join(texts).encode("utf-8", "surrogatepass"))
    return digest.digest()


def spec_key(name: str, policy: Policy | None) -> Hashable:
    """Return all that a policy says about how the texts of a column are read."""
    column = None if policy is None else policy.columns.get(name)
    if policy is None or column is None:
        return name
    spec = column.hierarchy
    described = None if spec is None else (type(spec).__name__, spec.model_dump_json())
    return name, described, policy.marks.get(name), str(policy.folder)
