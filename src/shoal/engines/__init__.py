"""Engines: where rows live, in files, frames and databases."""
