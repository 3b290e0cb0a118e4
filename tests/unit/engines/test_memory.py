"""If these fail, an amount of memory is misread, or DuckDB gets more than is left."""

import pytest

from shoal.engines import memory
from shoal.errors import DataError


@pytest.mark.parametrize(
    ("text", "n"), [("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), (" 500mb", 5 * 10**8), ("64KiB", 2**16), ("1B", 1)]
)
def test_sizes(text: str, n: int) -> None:
    assert memory.parse_size(text) == n


@pytest.mark.parametrize("text", ["", "4", "GB", "-1GB", "0GB", "4 XB", "4IB", "1e3MB", "80%"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(DataError, match="not a size"):
        memory.parse_size(text)


def test_what_is_taken_is_noticed() -> None:
    before = memory.resident()
    taken = bytearray(b"x") * 50_000_000
    assert memory.resident() - before > 30_000_000
    del taken


def test_what_is_left_to_duckdb() -> None:
    whole = 4 * 10**9
    shares = [memory.duckdb_share(whole, held) for held in range(0, whole, 10**8)]
    assert shares == sorted(shares, reverse=True)
    together = [held + share + memory.WRITING for held, share in zip(range(0, whole, 10**8), shares, strict=True)]
    assert all(n <= whole for n, share in zip(together, shares, strict=True) if share > whole // 8)
    assert shares[-1] == whole // 8
    assert memory.duckdb_share(10**9, 10**9) == memory.MIN_BYTES
    assert memory.duckdb_share(10**8, 10**9) == 10**8 // 2
