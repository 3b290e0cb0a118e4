"""Files that are damaged, forged or of another kind."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import CiphertextError, DataError, OutputError
from shoal.results.he.container import MAGIC, read_container, write_container


def write_header(path: Path, header: Any, payload: bytes = b"") -> None:
    """Write a file with a header that shoal would not write, and the digest that belongs to it."""
    content = MAGIC + json.dumps(header).encode() + b"\n" + payload
    path.write_bytes(content + hashlib.sha256(content).digest())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a", {"kind": "table", "n": 3}, [b"one\n", b"", b"two"], force=False)
    header, parts = read_container(path, "table")
    assert header["n"] == 3
    assert parts == [b"one\n", b"", b"two"]
    with pytest.raises(OutputError, match="already exists"):
        write_container(path, {"kind": "table"}, [], force=False)
    assert read_container(path, "table")[0]["n"] == 3
    write_container(path, {"kind": "table", "n": 4}, [], force=True)
    assert read_container(path, "table")[0]["n"] == 4


def test_changed_and_missing_bytes_are_noticed(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a", {"kind": "table"}, [b"payload"], force=False)
    whole = path.read_bytes()
    for i in [*range(0, len(whole), 11), len(whole) - 1]:
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(CiphertextError):
            read_container(path, "table")
        path.write_bytes(whole[:i])
        with pytest.raises(CiphertextError):
            read_container(path, "table")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a", {"kind": "secret key"}, [], force=False)
    with pytest.raises(CiphertextError, match="is a secret key, not a public key"):
        read_container(path, "public key")
    with pytest.raises(DataError, match="cannot be read"):
        read_container(tmp_path / "absent", "table")


@pytest.mark.parametrize(
    "header",
    [[], {}, {"kind": "table"}, {"kind": "table", "sizes": [-1, 8]}, {"kind": "table", "sizes": [3]}, "table", None],
)
def test_an_impossible_header_is_one_clear_error(header: Any, tmp_path: Path) -> None:
    write_header(tmp_path / "a", header, b"payload")
    with pytest.raises(CiphertextError, match="header is not valid"):
        read_container(tmp_path / "a", "table")
