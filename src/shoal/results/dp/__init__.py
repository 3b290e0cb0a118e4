"""Differential privacy: noisy answers to queries about a table, with a budget that is never exceeded."""
