"""Long work: one job at a time, the others wait; each reports its progress and can be cancelled.

A job that is cancelled stops where it is, as a command does on Ctrl-C: an exception is raised in its thread, between
two steps of Python. A step in compiled code or in a database is finished first.
"""

from __future__ import annotations

import ctypes
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.search.problem import Progress

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
OVER: tuple[JobState, ...] = ("done", "failed", "cancelled")
LivePoint = tuple[float, float, str, str, str]  # risk, loss, kind, the row that it leads to, its name
MAX_FINISHED = 200  # jobs that are over, of which the page still can tell
AGAIN = 0.05  # seconds until the next attempt to stop a job that could not be stopped
LOST = 5.0  # seconds after which an exception was lost, as in a destructor, and is raised again
# Never interrupted: compiling, which would leave half of a cache behind, and code that has just taken a lock.
_WHOLE = (f"{os.sep}numba{os.sep}", f"{os.sep}llvmlite{os.sep}", "<frozen importlib", f"{os.sep}threading.py")


class CancelledError(BaseException):
    """The user asked a job to stop; no handler for ordinary errors holds it up."""


@dataclass(frozen=True)
class Failure:
    """Why a job failed; no value of the data is in it."""

    message: str
    hint: str = ""


@dataclass(eq=False)
class Job:
    """Something that takes a while."""

    number: int
    title: str
    work: Callable[[Progress], str] = field(repr=False)  # returns the address to go on at
    back: str  # the address to return to
    state: JobState = "queued"
    step: str = ""
    share: float = 0.0
    target: str = ""
    failure: Failure | None = None
    began: float = 0.0
    seconds: float = 0.0
    live: Callable[[], list[LivePoint]] | None = field(default=None, repr=False)  # what was found so far
    over: threading.Event = field(default_factory=threading.Event, repr=False)
    ending: bool = False  # nothing is raised in its thread any more
    interrupted: bool = False  # an exception was raised in its thread, and may still be on its way
    stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def elapsed(self) -> float:
        """Seconds since it began, or that it took."""
        return time.monotonic() - self.began if self.state == "running" else self.seconds

    def progress(self, step: str, share: float) -> None:
        """Tell how far the work is; raises where the user has cancelled it."""
        if self.stopped.is_set():
            raise CancelledError
        self.step, self.share = step, min(1.0, max(0.0, float(share)))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the page."""
        return {
            "state": self.state,
            "what": self.step,
            "share": self.share,
            "seconds": round(self.elapsed, 1),
            "target": self.target,
            "found": 0 if self.live is None else len(self.live()),
        }


class Jobs:
    """A queue and one thread that works through it."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._jobs: dict[int, Job] = {}
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._last = 0
        self._ending = threading.Lock()  # held to raise in the worker, and by the worker to end a job

    def __getitem__(self, number: int) -> Job:
        return self._jobs[number]

    def start(
        self,
        title: str,
        work: Callable[[Progress], str],
        back: str,
        live: Callable[[], list[LivePoint]] | None = None,
    ) -> Job:
        """Queue work for the background thread."""
        with self._lock:
            self._last += 1
            job = Job(self._last, title, work, back, live=live)
            self._jobs[job.number] = job
            over = [number for number, old in self._jobs.items() if old.state in OVER]
            for number in over[:-MAX_FINISHED]:
                del self._jobs[number]
            if self._worker is None:
                self._worker = threading.Thread(target=self._run, name="shoal-jobs", daemon=True)
                self._worker.start()
        self._queue.put(job)
        return job

    def waiting(self, job: Job) -> int:
        """How many jobs come before this one."""
        return sum(other.state in ("queued", "running") and n < job.number for n, other in list(self._jobs.items()))

    def cancel(self, job: Job) -> None:
        """Stop a job: at once where it waits, at its next step where it runs."""
        with self._lock:
            first = not job.stopped.is_set()
            job.stopped.set()
            if job.state == "queued":
                job.state = "cancelled"
                job.over.set()
        if first and not job.over.is_set():
            threading.Thread(target=self._interrupt, args=(job,), name="shoal-cancel", daemon=True).start()

    def _interrupt(self, job: Job) -> None:
        """Raise in the worker, as soon as nothing would break, until the job is over."""
        pause = 0.0
        while not job.over.wait(pause):
            with self._ending:
                if job.ending or self._worker is None or self._worker.ident is None:
                    return
                stoppable = _stoppable(sys._current_frames().get(self._worker.ident))
                if stoppable:
                    job.interrupted = True
                    _raise_in(self._worker.ident, CancelledError)
            pause = LOST if stoppable else AGAIN

    def close(self, seconds: float = 2.0) -> None:
        """Cancel everything and wait a moment for the work to end."""
        for job in list(self._jobs.values()):
            self.cancel(job)
        self._queue.put(None)
        if self._worker is not None:
            self._worker.join(seconds)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.stopped.is_set():
                    continue
                job.state, job.began = "running", time.monotonic()
            self._work(job)

    def _work(self, job: Job) -> None:
        """Do a job; the exception that cancels it may come anywhere, and is not let out of here.

        One that was raised and has not come yet is not taken back by raising None: CPython would go on looking for an
        exception at every step, which slows all threads down, and in 3.11 never ends where calls are profiled.
        """
        result: tuple[JobState, str, Failure | None] = ("cancelled", "", None)
        started = settled = False
        while not settled:
            try:
                if not started:
                    started = True
                    result = _outcome(job)
                with self._ending:
                    job.ending = True
                if job.interrupted:
                    _raise_in(threading.get_ident(), CancelledError)  # in the place of the one on its way, if any
                    while True:
                        pass
                settled = True
            except CancelledError:
                settled = job.ending
        state, job.target, job.failure = result
        job.seconds = time.monotonic() - job.began
        job.state = state
        job.over.set()


def _outcome(job: Job) -> tuple[JobState, str, Failure | None]:
    """Do the work; return how it ended, where to go on, and why it failed."""
    try:
        return "done", job.work(job.progress), None
    except CancelledError:
        return "cancelled", "", None
    except ShoalError as error:
        return "failed", "", Failure(error.message, error.hint or "")
    except BaseException as error:  # a library in Rust that panics raises no Exception
        return "failed", "", unexpected(error)


def _stoppable(frame: FrameType | None) -> bool:
    """Return whether a thread is working on a job, outside of code that must not be interrupted, such as an import."""
    while frame is not None and frame.f_code is not _outcome.__code__:
        if any(part in frame.f_code.co_filename for part in _WHOLE):
            return False
        frame = frame.f_back
    return frame is not None


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in another thread before its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def unexpected(error: BaseException) -> Failure:
    """Describe a bug by its type and location only: its text may quote the data."""
    if isinstance(error, MemoryError):
        return Failure("there is not enough memory", "use fewer columns, or start shoal web with --engine duckdb")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "shoal" in Path(frame.filename).parts]
    location = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    message = f"unexpected error: {type(error).__name__}{location}"
    print(f"shoal web: {message}", file=sys.stderr, flush=True)
    return Failure(message, "this is a bug in shoal; please report it without any data")
