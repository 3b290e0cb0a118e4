"""The command line: commands, options, output and exit codes."""

import os

# With limited memory, the threads of OpenBLAS can wait forever for memory that they do not get, ignoring signals.
# It reads this once, when NumPy or SciPy is imported; no command multiplies matrices for which threads would pay.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from shoal.cli.commands import app, main

__all__ = ["app", "main"]
