"""Long work: one job at a time, the others wait; each tells how far it is and can be cancelled."""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.search.problem import Progress

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
OVER: tuple[JobState, ...] = ("done", "failed", "cancelled")
KEPT = 200  # jobs that are over, of which the page still can tell


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
    what: str = ""
    share: float = 0.0
    target: str = ""
    failure: Failure | None = None
    began: float = 0.0
    seconds: float = 0.0
    over: threading.Event = field(default_factory=threading.Event, repr=False)
    stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def elapsed(self) -> float:
        """Seconds since it began, or that it took."""
        return time.monotonic() - self.began if self.state == "running" else self.seconds

    def progress(self, what: str, share: float) -> None:
        """Tell how far the work is; raises where the user has cancelled it."""
        if self.stopped.is_set():
            raise CancelledError
        self.what, self.share = what, min(1.0, max(0.0, float(share)))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the page."""
        return {
            "state": self.state,
            "what": self.what,
            "share": self.share,
            "seconds": round(self.elapsed, 1),
            "target": self.target,
        }


class Jobs:
    """A queue and one thread that works through it."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._jobs: dict[int, Job] = {}
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._last = 0

    def __getitem__(self, number: int) -> Job:
        return self._jobs[number]

    def start(self, title: str, work: Callable[[Progress], str], back: str) -> Job:
        """Queue work for the background thread."""
        with self._lock:
            self._last += 1
            job = Job(self._last, title, work, back)
            self._jobs[job.number] = job
            over = [number for number, old in self._jobs.items() if old.state in OVER]
            for number in over[:-KEPT]:
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
        """Stop a job: at once where it waits, at the next word of its progress where it runs."""
        job.stopped.set()
        with self._lock:
            if job.state == "queued":
                job.state = "cancelled"
                job.over.set()

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
        state: JobState = "failed"
        try:
            target = job.work(job.progress)
            if job.stopped.is_set():
                raise CancelledError
            job.target, state = target, "done"
        except CancelledError:
            state = "cancelled"
        except ShoalError as error:
            job.failure = Failure(error.message, error.hint or "")
        except BaseException as error:  # a library in Rust that panics raises no Exception
            job.failure = unexpected(error)
        job.seconds = time.monotonic() - job.began
        job.state = state
        job.over.set()


def unexpected(error: BaseException) -> Failure:
    """An error of ours: its kind and its place in our code. Its text may quote the data, and is told nowhere."""
    if isinstance(error, MemoryError):
        return Failure("there is not enough memory", "use fewer columns, or start shoal web with --engine duckdb")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "shoal" in Path(frame.filename).parts]
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    told = f"unexpected error: {type(error).__name__}{place}"
    print(f"shoal web: {told}", file=sys.stderr, flush=True)
    return Failure(told, "this is a bug in shoal; please report it without any data")
