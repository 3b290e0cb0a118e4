"""Spark: rows stay on the cluster, which writes the release to a folder of Parquet files or to a table."""
