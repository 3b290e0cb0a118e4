"""A release as text for people."""
