"""Compiled loops that several rooms share, and how they are compiled."""
