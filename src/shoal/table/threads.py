"""Threads: independent parts of a computation on both cores, with the results in the order of the parts.

Compiled loops, and NumPy where it has much to do, run without Python's lock. A part sees what was there before the
first one began and nothing of the others, so the number of threads, and which of them is faster, change nothing but
the time.

The calling thread works too, from the last part towards the first, the others from the first on. So a signal, or the
exception that cancels a job, finds it at its work as ever, and it waits for others only while they end their last
part. Parts are short, since nothing stops one that has begun; if an exception ends the computation, those that have
not begun are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Done = TypeVar("Done")


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


THREADS = min(2, _cores())


def done_in_parts(work: Callable[[Part], Done], parts: Sequence[Part]) -> list[Done]:
    """Return what ``work`` returns for each part, in their order."""
    n_others = min(THREADS, len(parts)) - 1
    if n_others < 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(n_others) as pool:
        try:
            theirs = [pool.submit(work, part) for part in parts]
            own = {i: work(parts[i]) for i in reversed(range(len(parts))) if theirs[i].cancel()}
            return [own[i] if i in own else future.result() for i, future in enumerate(theirs)]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
