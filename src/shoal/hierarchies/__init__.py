"""Generalization hierarchies, their builders, and what a released text covers."""
