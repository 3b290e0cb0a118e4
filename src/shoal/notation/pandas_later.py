"""Keep pyarrow from loading pandas before it is used.

On its first conversion pyarrow imports pandas where it is installed, to recognize its frames: a fifth of the time of
`shoal check` on a small table (0.65 instead of 0.82 s of CPU) and 32 MB, for a program that may never have a frame.
Here pyarrow's first search finds no pandas. When pandas is imported later, pyarrow searches again before that import
returns, so every frame is recognized.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType

import pyarrow as pa


class _Pandas(MetaPathFinder, Loader):
    """Hide pandas from pyarrow's first search, and let pyarrow search again when it is imported."""

    def __init__(self) -> None:
        self.hidden_from: int | None = None
        self.loader: Loader | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "pandas":
            return None
        if self.hidden_from == get_ident():
            raise ModuleNotFoundError("pandas is not loaded yet", name="pandas")
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        assert self.loader is not None
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert self.loader is not None
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self.loader  # the module as it would be without this finder
        self.loader.exec_module(module)
        with suppress(ValueError):
            sys.meta_path.remove(self)
        with suppress(ImportError):  # a pandas that is too old for pyarrow
            pa.nulls(0).to_pandas()  # looks again for what was not found the first time


def load_pandas_later() -> None:
    """Let pyarrow search for pandas now, in vain, and again once it is imported."""
    if "pandas" in sys.modules or any(isinstance(finder, _Pandas) for finder in sys.meta_path):
        return
    finder = _Pandas()
    sys.meta_path.insert(0, finder)
    finder.hidden_from = get_ident()
    try:
        pa.array([None])
    finally:
        finder.hidden_from = None
