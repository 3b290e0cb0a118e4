"""The command line: commands, options, output and exit codes."""

import os

# With limited memory, the threads of OpenBLAS can wait forever for memory that they do not get, ignoring signals.
# It reads this once, when NumPy or SciPy is imported; no command multiplies matrices for which threads would pay.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The allocator of the C library takes a tenth less memory than Arrow's own, and no longer.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# No command uses plugins of pydantic, which looks for them in every package that is installed.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from shoal.cli.commands import app, main

__all__ = ["app", "main"]
