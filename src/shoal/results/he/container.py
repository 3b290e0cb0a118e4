"""The file format: a line with its kind, a header in JSON, ciphertexts or a key, and the SHA-256 of all of it.

The digest shows damage, not forgery: who can change the file can change the digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.engines.formats import atomic_files
from shoal.errors import CiphertextError, DataError, PolicyError

MAGIC = b"shoal homomorphic encryption 1\n"
_DIGEST = hashlib.sha256().digest_size


def write_container(
    path: str | Path, header: Mapping[str, Any], parts: Sequence[bytes], *, force: bool, private: bool = False
) -> Path:
    """Write a file completely or not at all."""
    target = Path(path)
    header_text = json.dumps({**header, "sizes": [len(part) for part in parts]}, sort_keys=True, ensure_ascii=False)
    content = b"".join([MAGIC, header_text.encode(), b"\n", *parts])
    atomic_files.write_bytes(target, content + hashlib.sha256(content).digest(), force=force, private=private)
    return target


def read_container(path: str | Path, kind: str) -> tuple[dict[str, Any], list[bytes]]:
    """Read a file of one kind: its header and its parts."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'not a file name'}") from None
    if not content.startswith(MAGIC):
        raise CiphertextError(f"{path}: is not a key or an encrypted file of this version of shoal")
    content, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        raise CiphertextError(f"{path}: is damaged or incomplete", "copy it again")
    header_bytes, _, payload = content[len(MAGIC) :].partition(b"\n")
    with damaged(path):
        header = json.loads(header_bytes)
        if header["kind"] != kind:
            raise CiphertextError(f"{path}: is a {header['kind']}, not a {kind}", _ADVICE.get((header["kind"], kind)))
        parts, start = [], 0
        for size in header["sizes"]:
            if not isinstance(size, int) or size < 0:
                raise ValueError
            parts.append(payload[start : start + size])
            start += size
        if start != len(payload):
            raise ValueError
    return header, parts


_ADVICE = {
    ("secret key", "public key"): "encrypting and computing need NAME.public.key; the secret key stays with its owner",
    ("public key", "secret key"): "only NAME.secret.key decrypts, and only its owner has it",
    ("table", "result"): "compute something with it first",
}


class damaged:  # noqa: N801  (a context manager, named for its use)
    """Turn what goes wrong while a header is interpreted into one error that quotes nothing of the file."""

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, PolicyError | LookupError | TypeError | ValueError | ArithmeticError | RuntimeError):
            raise CiphertextError(f"{self.path}: its header is not valid", "create the file again") from None
