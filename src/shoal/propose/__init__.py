"""Inspect an unknown table and propose a policy for it."""
