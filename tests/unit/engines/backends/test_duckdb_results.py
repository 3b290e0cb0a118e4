"""Results of DuckDB as Arrow tables: those of Ibis, whether or not Ibis is asked."""

import subprocess
import sys

import ibis
import pyarrow as pa
import pytest

from shoal.engines.backends.duckdb_functions import without_nan
from shoal.engines.backends.duckdb_results import fetched


@ibis.udf.scalar.python
def doubled(number: int) -> int:
    """Twice a number, computed by Python."""
    return 2 * number


QUERIES = {
    "values": "SELECT 1 AS a, 'x' AS b, DATE '2024-02-03' AS c, 1.50::DECIMAL(9, 2) AS d, NULL::VARCHAR AS e",
    "floats": "SELECT unnest([1.5, 'nan'::DOUBLE, NULL, -0.0]) AS x",
    "instants": "SELECT TIMESTAMPTZ '2024-02-03 04:05:06+00' AS t, TIMESTAMP '2024-02-03 04:05:06' AS u",
    "nothing": "SELECT 1::INTEGER AS a WHERE false",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_rows_and_types_are_those_of_ibis(query):
    backend = ibis.duckdb.connect()
    backend.con.execute(f"CREATE TEMP VIEW asked AS {query}")
    table = backend.table("asked")
    floats = [name for name, kind in table.schema().items() if kind.is_floating()]
    for asked in (table, table.mutate(**{name: without_nan(table[name]) for name in floats})):
        found, expected = fetched(backend, asked), asked.to_pyarrow()
        assert found.schema == expected.schema
        assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself


def test_what_is_in_the_memory_of_python_is_found():
    backend = ibis.duckdb.connect()
    people = ibis.memtable(pa.table({"age": [31, 34]}))
    assert fetched(backend, people.select("age"))["age"].to_pylist() == [31, 34]
    backend.con.register("people", pa.table({"age": [31, 34]}))
    there = backend.table("people")
    assert sorted(fetched(backend, there.select(twice=doubled(there.age)))["twice"].to_pylist()) == [62, 68]
    assert fetched(backend, there.mutate(nobody=ibis.null()))["nobody"].null_count == 2


RELEASE = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq, shoal
from shoal.engines import connect

path = Path(sys.argv[1])
pq.write_table(pa.table({"age": [31, 34, 36, 38]}), path)
policy = {"columns": {"age": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 2}]}
shoal.anonymize(connect.from_files(path), policy).save(path.with_name("release.parquet"))
print("pandas" in sys.modules)
"""


def test_pandas_is_not_loaded_for_a_release(tmp_path):
    run = [sys.executable, "-c", RELEASE, tmp_path / "table.parquet"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
