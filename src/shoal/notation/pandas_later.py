"""Keep pyarrow from loading pandas before anybody uses it.

On its first conversion pyarrow imports pandas where it is installed, to recognize its frames: half a second and 80 MB,
for a program that may never have a frame. What is not loaded cannot be in anybody's hands, so here pyarrow is told that
there is no pandas; as soon as pandas is imported, by whomever, pyarrow learns of it, before the import returns.
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
    """Hides pandas from pyarrow's first search, and tells pyarrow when somebody else imports it."""

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
        module.__loader__ = module.__spec__.loader = self.loader  # as if nobody had been in between
        self.loader.exec_module(module)
        with suppress(ValueError):
            sys.meta_path.remove(self)
        with suppress(ImportError):  # a pandas that is too old for pyarrow
            pa.nulls(0).to_pandas()  # looks again for what was not found the first time


def load_pandas_later() -> None:
    """Let pyarrow look for pandas now, find none, and look again once somebody has imported it."""
    if "pandas" in sys.modules or any(isinstance(finder, _Pandas) for finder in sys.meta_path):
        return
    finder = _Pandas()
    sys.meta_path.insert(0, finder)
    finder.hidden_from = get_ident()
    try:
        pa.array([None])
    finally:
        finder.hidden_from = None
