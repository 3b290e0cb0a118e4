"""Reading untrusted files: never more than fits in memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MOST_BYTES = 2**28


def read_bounded(path: str | Path, limit: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file; raise OSError if it has more than ``limit``, as a device without an end does."""
    with Path(path).open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content
