"""What compressed files and folders hold beside their table."""

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.engines.formats import table_files
from shoal.engines.formats.unread_content import unread_content
from shoal.errors import DataError


def member(content: bytes, name: str = "") -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(name, "wb", fileobj=packed) as file:
        file.write(content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("members", "n"),
    [
        ([("", b"a\n1\n")], 0),
        ([("people.csv", b"a\n1\n")], 0),
        ([("Anna.csv", b"a\n1\n")], 1),
        ([("", b"a\n1\n"), ("", b"2\n")], 0),
        ([("", b"a\n1\n"), ("Anna.csv", b"2\n")], 1),
        ([("", b"a\n" + b"1\n" * 2_000_000), ("", b""), ("Anna.csv", b"2\n")], 1),
    ],
)
def test_names_in_any_member_of_a_gzip_file(members: list[tuple[str, bytes]], n: int, tmp_path: Path) -> None:
    path = tmp_path / "people.csv.gz"
    path.write_bytes(b"".join(member(content, name) for name, content in members))
    assert len(unread_content(path)) == n


def test_a_small_gzip_file_that_unpacks_to_more_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv.gz"
    path.write_bytes(member(b"a\n" + b"1\n" * 4_000_000))
    assert len(table_files.read_table_file(path).table) == 4_000_000
    monkeypatch.setattr(table_files, "physical_memory", lambda: 2**24)
    with pytest.raises(DataError, match="too much for memory"):
        table_files.read_table_file(path)
    monkeypatch.setattr(table_files, "physical_memory", lambda: 2**26)  # enough for its text, but not for its cells
    with pytest.raises(DataError, match="4,000,000 rows with 1 columns, too many for memory"):
        table_files.read_table_file(path)


def test_marks_and_checksums_of_spark_hold_nothing_else(tmp_path: Path) -> None:
    part = tmp_path / "part-00000.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), part)
    n_blocks = -(-part.stat().st_size // 512)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / "._SUCCESS.crc").write_bytes(b"crc\0\0\0\2\0")
    (tmp_path / f".{part.name}.crc").write_bytes(b"crc\0\0\0\2\0" + bytes(4 * n_blocks))
    assert unread_content(tmp_path) == ()
    (tmp_path / "_SUCCESS").write_bytes(b"Anna Smith")
    (tmp_path / ".anna_smith.crc").write_bytes(b"crc\0\0\0\2\0")
    (found,) = unread_content(tmp_path)
    assert "3 files" in found.fact  # and the checksum of the mark, which is no longer one
