"""DuckDB asked directly: the same counts and types as through Ibis, which is not loaded for a usual release."""

import subprocess
import sys

import pyarrow as pa
import pytest

from shoal.engines.backends.duckdb import DuckDB
from shoal.engines.backends.duckdb_direct import LaterBackend
from shoal.engines.ibis import IbisEngine

# A value for each type, beside null; the odd name must be quoted.
COMMON = {
    "VARCHAR": ["'x'", "''", "'it''s \"ä\"'", "'NULL'"],
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "UTINYINT": ["255"],
    "SMALLINT": ["-32768"],
    "USMALLINT": ["65535"],
    "INTEGER": ["-2147483648"],
    "UINTEGER": ["4294967295"],
    "BIGINT": ["9007199254740993", "-1"],
    "UBIGINT": ["9223372036854775808"],
    "DATE": ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'"],
    "TIMESTAMP": ["'2024-02-29 12:34:56.789012'", "'1969-12-31'"],
    "DECIMAL(9,2)": ["1.50", "-0.01"],
    "DECIMAL(38,0)": ["12345678901234567890123456789012345678"],
    "FLOAT": ["'nan'", "-0.0", "0.0", "'inf'", "'-inf'", "0.1"],
    "DOUBLE": ["'nan'", "-0.0", "0.0", "'inf'", "'-inf'", "0.1", "5e-324"],
}
LEFT_TO_IBIS = {
    "TIMESTAMP WITH TIME ZONE": ["'2024-02-29 12:34:56+00'"],
    "TIMESTAMP_NS": ["'2024-02-29 12:34:56.789012'"],
    "TIME": ["'12:34:56'"],
    "HUGEINT": ["1"],
    "UUID": ["'12345678-1234-1234-1234-123456789012'"],
    "ENUM('a', 'b')": ["'a'"],
}


def opened(kind, values, odd='odd " name'):
    backend = DuckDB(LaterBackend())
    cells = ", ".join(f"(CAST({value} AS {kind}), {i % 2})" for i, value in enumerate([*values, *values, "NULL"]))
    quoted = odd.replace('"', '""')
    view = backend.view(f'(SELECT * FROM (VALUES {cells}) AS t("{quoted}", n))')
    return backend, view


def normalized(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize(("kind", "values"), COMMON.items(), ids=COMMON)
def test_counts_and_types_are_those_of_ibis(kind, values):
    backend, view = opened(kind, values)
    directly, through_ibis = IbisEngine(view, backend), IbisEngine(view.table, backend)
    for names in (['odd " name'], ["n", 'odd " name']):
        found, expected = directly.groups(names), through_ibis.groups(names)
        assert found.weight == expected.weight
        assert found.table.schema == expected.table.schema
        assert normalized(found.table) == normalized(expected.table)
        assert view.arrow_types(names) == backend.arrow_types(through_ibis.normalized(names).select(*names))
    assert view.grouped(view.columns, "records") is not None


@pytest.mark.parametrize(("kind", "values"), LEFT_TO_IBIS.items(), ids=LEFT_TO_IBIS)
def test_columns_of_other_types_are_left_to_ibis(kind, values):
    backend, view = opened(kind, values)
    assert view.grouped(view.columns, "records") is None
    assert view.arrow_types(view.columns) is None
    assert view.grouped(["n"], "records").num_rows == 2  # the other column does not matter then
    found, expected = (
        IbisEngine(view, backend).groups(view.columns),
        IbisEngine(view.table, backend).groups(view.columns),
    )
    assert found.table.schema == expected.table.schema
    assert normalized(found.table) == normalized(expected.table)


def test_settings_are_those_of_ibis():
    backend = LaterBackend()
    names = "'TimeZone', 'python_enable_replacements'"
    asked = f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names}) ORDER BY name"
    before = backend.con.execute(asked).fetchall()
    assert backend.name == "duckdb"  # which Ibis answers
    assert backend.con.execute(asked).fetchall() == before


RELEASE = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.csv, pyarrow.parquet as pq, shoal
from shoal.engines import connect

table = pa.table({"age": [31, 34, 36, 38], "town": ["A", "A", "B", "B"]})
for suffix in (".csv", ".parquet"):
    path = Path(sys.argv[1]) / f"table{suffix}"
    (pa.csv.write_csv if suffix == ".csv" else pq.write_table)(table, path)
    policy = {"columns": {"age": {"role": "quasi"}, "town": {"role": "quasi"}}}
    policy["require"] = [{"model": "k-anonymity", "k": 2}]
    shoal.anonymize(connect.from_files(path), policy).save(path.with_name(f"release{suffix}"))
print([name for name in ("ibis.backends.duckdb", "sqlglot.dialects.duckdb") if name in sys.modules])
"""


def test_the_backend_of_ibis_is_not_loaded_for_a_release(tmp_path):
    done = subprocess.run([sys.executable, "-c", RELEASE, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_columns_are_those_of_the_view():
    _, view = opened("VARCHAR", ["'a'"])
    assert view.columns == ['odd " name', "n"]
    assert isinstance(view.arrow_types(["n"]), pa.Schema)
