"""The command line."""

from shoal.cli.commands import app, main

__all__ = ["app", "main"]
