"""Integral privacy: publish a result only if many different databases generate it."""
