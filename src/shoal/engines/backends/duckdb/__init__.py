"""DuckDB: files read out of core, and tables of a DuckDB database."""
