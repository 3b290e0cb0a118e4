"""Results instead of tables: checked, private, computed by several parties or on encrypted data."""
