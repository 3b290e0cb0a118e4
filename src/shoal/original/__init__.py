"""A release compared with its original: consistency, concealment, owners of records."""
