"""Loops that may be interpreted, run both ways: compiled and interpreted, they give the same to the last bit."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from shoal.compiled.jit import CompiledLoop


def bits(found: Any) -> Any:
    """All that a loop returned, or left in its arguments: kinds and bytes of the arrays, and plain numbers."""
    if isinstance(found, tuple | list):
        return [bits(each) for each in found]
    return (found.dtype, found.shape, found.tobytes()) if isinstance(found, np.ndarray) else found


@pytest.fixture(scope="module")
def both_ways() -> Iterator[set[str]]:
    """The names of the loops that were run both ways."""
    interpret, asked = CompiledLoop._interpreted, set()

    def run(self: CompiledLoop, *arguments: Any) -> Any:
        if not self._options.get("cache"):  # not callable from Python once it is compiled
            return interpret(self, *arguments)
        asked.add(self.__name__)
        other = deepcopy(arguments)
        with np.errstate(over="ignore"):
            found = self.py_func(*other)
        left, compiled = bits(other), self.dispatcher()(*arguments)
        if not self.__name__.startswith("_merge"):  # whose arguments have room that is never written
            assert left == bits(arguments)
        assert bits(compiled) == bits(found)
        return compiled

    loops = [each for each in _loops() if each.may_be_interpreted]  # also those that have been compiled meanwhile
    with pytest.MonkeyPatch.context() as patch:
        for loop in loops:
            patch.setattr(loop, "_run", run.__get__(loop))
        yield asked


def _loops() -> list[CompiledLoop]:
    from shoal.compiled import deriving, grouping, histograms, leaves, nodes
    from shoal.models import kernels as of_models
    from shoal.search.cells import mondrian_kernels as of_regions

    modules = (of_models, of_regions, grouping, histograms, nodes, deriving, leaves)
    return [each for module in modules for each in vars(module).values() if isinstance(each, CompiledLoop)]
