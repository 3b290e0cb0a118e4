"""shoal: turn a table about people into a release that is safe to publish, and prove it.

A fish hides in a shoal, a record in a crowd of at least k.
"""

import pkgutil
import re
from importlib import import_module
from typing import Any

# The names are listed in the stub, where type checkers find them. Each is loaded on first use: `shoal --help` needs
# none of them. No module has the name of a function here: importing it would replace the function by the module.
_STUB = (pkgutil.get_data(__name__, "__init__.pyi") or b"").decode()
_HOME = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, flags=re.MULTILINE)}

__version__ = "0.1.0"
# Without what needs an extra: `from shoal import *` works in a plain installation.
__all__ = sorted({*_HOME} - {"Anonymizer", "he", "smc"})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    home = import_module(_HOME[name])
    return getattr(home, name, None) or import_module(f"{home.__name__}.{name}")  # he and smc are packages


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
