"""A release beside its original: consistency, concealment, owners of records."""
