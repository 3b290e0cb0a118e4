"""Threads: independent parts of a computation on both cores, with the results in the order of the parts.

Compiled loops, and NumPy where it has much to do, run without Python's lock. A part sees what was there before the
first one began and nothing of the others, so the number of threads, and which of them is faster, change nothing but
the time.

The calling thread works too, from the last part towards the first, the others from the first on. So a signal, or the
exception that cancels a job, finds it at its work as ever, and it waits for others only while they end their last
part. Parts are short, or ask between their steps whether they are still wanted; if an exception ends the computation,
those that have not begun are dropped. What a part does in parts is done by its own thread: the other is busy too.
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
    """What a thread knows of the part that it is doing."""

    at_work = False  # whether it is doing a part
    dropped: Event | None = None  # of a thread that helps: set when an exception has ended what it helps with


_thread_state = _PartOfThread()


def done_in_parts(
    work: Callable[[Part], Result], parts: Sequence[Part], pool: ThreadPoolExecutor | None = None
) -> list[Result]:
    """Return what ``work`` returns for each part, in their order; ``pool``: the threads to help, if they are there."""
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
    """Return threads to help with many short parts: to start them takes as long as a part. They end with a ``with``."""
    return ThreadPoolExecutor(max(1, THREADS - 1))


def done_ahead(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield what ``work`` returns for each part, in their order, as many at a time as there are threads.

    For work whose result depends on nothing but the part: who no longer asks for results wastes the last few.
    """
    waiting = iter(parts)
    while batch := list(islice(waiting, THREADS)):
        yield from done_in_parts(work, batch)


class _DroppedError(Exception):
    """Ends a part that nobody waits for any more."""


def go_on_if_wanted() -> None:
    """End the part that this thread helps with if an exception has ended the computation."""
    if _thread_state.dropped is not None and _thread_state.dropped.is_set():
        raise _DroppedError
