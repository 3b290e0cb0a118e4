"""Compute independent parts on both cores, with the results in the order of the parts.

Compiled loops, and NumPy on large arrays, run without Python's lock. Parts do not depend on each other, so the number
of threads changes nothing but the time.

The calling thread works too, from the last part towards the first, the helpers from the first on. So a signal, or the
exception that cancels a job, reaches it at once, and it waits only for the last part of each helper. Parts are short,
or call ``go_on_if_wanted`` between their steps. If an exception ends the computation, parts that have not begun are
dropped. Parts within a part are computed by the same thread: the other one is busy too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from itertools import islice
from threading import Event, local
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


THREADS = min(2, _cores())


class _PartOfThread(local):
    """The state of a thread that computes parts."""

    at_work = False  # whether it computes a part now
    dropped: Event | None = None  # of a helper: set when an exception has ended the computation


_thread_state = _PartOfThread()


def done_in_parts(
    work: Callable[[Part], Result], parts: Sequence[Part], pool: ThreadPoolExecutor | None = None
) -> list[Result]:
    """Return what ``work`` returns for each part, in their order; ``pool``: helpers that run already."""
    if min(THREADS, len(parts)) < 2 or _thread_state.at_work:
        return [work(part) for part in parts]
    with nullcontext(pool) if pool is not None else kept_threads() as helpers:
        dropped = Event()
        futures = [helpers.submit(_help, work, part, dropped) for part in parts]
        _thread_state.at_work = True
        try:
            results = {i: work(parts[i]) for i in reversed(range(len(parts))) if futures[i].cancel()}
            return [results[i] if i in results else future.result() for i, future in enumerate(futures)]
        except BaseException:
            dropped.set()
            wait([future for future in futures if not future.cancel()])
            raise
        finally:
            _thread_state.at_work = False


def _help(work: Callable[[Part], Result], part: Part, dropped: Event) -> Result:
    _thread_state.at_work, _thread_state.dropped = True, dropped
    return work(part)


def kept_threads() -> ThreadPoolExecutor:
    """Return helpers for many short parts, as starting them takes as long as a part; a ``with`` ends them."""
    return ThreadPoolExecutor(max(1, THREADS - 1))


def done_ahead(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield what ``work`` returns for each part, in their order, as many at a time as there are threads.

    If the caller stops early, the last few results were computed for nothing.
    """
    waiting = iter(parts)
    while batch := list(islice(waiting, THREADS)):
        yield from done_in_parts(work, batch)


class _DroppedError(Exception):
    """Cancels a part whose result is no longer needed."""


def go_on_if_wanted() -> None:
    """Cancel the part of a helper if an exception has ended the computation."""
    if _thread_state.dropped is not None and _thread_state.dropped.is_set():
        raise _DroppedError
