"""Parties as processes that are started once, and a runtime of mpyc with a single party in this process."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from joint_runs import JointRuns, shared_runs
from shoal.results.smc import links
from shoal.results.smc.random_bits import with_random_signs


@pytest.fixture(scope="session")
def joint() -> JointRuns:
    return shared_runs()


@pytest.fixture(scope="session")
def alone() -> Iterator[Callable[[Callable[[Any], Any]], Any]]:
    """Run a protocol with one party, which needs no connections: the arithmetic is the same, the shares are values."""
    module = links.load_mpyc()
    options = types.SimpleNamespace(
        threshold=0, no_log=True, no_prss=False, no_async=False, no_barrier=True, sec_param=40, bit_length=64
    )
    options.mix32_64bit = options.ssl = False
    with asyncio.Runner() as runner:

        async def made() -> Any:
            return with_random_signs(module.Runtime)(0, [module.Party(0, "", 0)], options)

        runtime = runner.run(made())

        def run(protocol: Callable[[Any], Any]) -> Any:
            async def awaited() -> Any:
                links._set_runtime(runtime)
                return await protocol(runtime)

            return runner.run(awaited())

        yield run
        links._set_runtime(None)
