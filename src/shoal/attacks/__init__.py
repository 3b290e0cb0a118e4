"""Simulated attacks on a release, and how often they succeed."""
