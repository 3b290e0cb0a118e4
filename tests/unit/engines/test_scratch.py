"""Sessions on one database: what one of them does, no other sees."""

import multiprocessing

import duckdb
import pyarrow as pa
import pytest

from shoal.engines import scratch


def test_a_session_does_not_see_the_tables_of_another():
    with scratch.connect() as one, scratch.connect() as other:
        one.register("rows", pa.table({"a": [1]}))
        with pytest.raises(duckdb.CatalogException):
            other.sql("SELECT * FROM rows")


def test_settings_stay_in_their_session():
    zone = "SELECT current_setting('TimeZone')"
    with scratch.connect() as one, scratch.connect() as other:
        before = other.sql(zone).fetchall()
        one.execute("SET TimeZone = 'Asia/Tokyo'")
        assert one.sql(zone).fetchall() == [("Asia/Tokyo",)]
        assert other.sql(zone).fetchall() == before


def test_closing_a_session_leaves_the_database_open():
    with scratch.connect() as one:
        one.sql("SELECT 1").fetchall()
    with scratch.connect() as other:
        assert other.sql("SELECT 2").fetchall() == [(2,)]


def _count(rows: list[int]) -> int:
    with scratch.connect() as connection:
        connection.register("rows", pa.table({"a": rows}))
        return connection.sql("SELECT count(DISTINCT a) FROM rows").fetchall()[0][0]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_a_database_of_its_own():
    assert _count([1, 1, 2]) == 2
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_count, ([1, 2, 3, 3],)).get(timeout=60) == 3
