"""PostgreSQL: the rows stay in the database, and the release becomes one of its tables."""
