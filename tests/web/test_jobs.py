"""Jobs: one at a time, stopped wherever they are, and the next one runs."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from serving import PATIENCE
from shoal.web import jobs
from shoal.web.jobs import Job, Jobs


@pytest.fixture
def queue() -> Iterator[Jobs]:
    found = Jobs()
    yield found
    found.close(PATIENCE)


def finished(job: Job) -> Job:
    assert job.over.wait(PATIENCE)
    return job


def test_work_that_never_tells_its_progress_is_stopped_and_cleans_up(queue: Jobs) -> None:
    """As an attack or the count of a large table: it does not ask whether it was cancelled."""
    begun, cleaned = threading.Event(), threading.Event()

    def work(_: object) -> str:
        try:
            begun.set()
            while True:
                sum(range(1000))
        except Exception:  # what heeds ordinary errors does not hold it up
            return "/lost"
        finally:
            cleaned.set()

    job = queue.start("endless", work, "/")
    assert begun.wait(PATIENCE)
    queue.cancel(job)
    assert finished(job).state == "cancelled"
    assert cleaned.is_set()
    assert finished(queue.start("next", lambda _: "/there", "/")).target == "/there"


def test_an_import_is_not_stopped_halfway(queue: Jobs) -> None:
    begun, go_on = threading.Event(), threading.Event()
    source = "begun.set()\ngo_on.wait(600)\nfor _ in range(1000): pass\ndone.append(1)\n"
    done: list[int] = []
    code = compile(source, "<frozen importlib._bootstrap>", "exec")  # as the frames of an import are called

    def work(_: object) -> str:
        exec(code, {"begun": begun, "go_on": go_on, "done": done})
        while True:
            sum(range(1000))

    job = queue.start("import", work, "/")
    assert begun.wait(PATIENCE)
    queue.cancel(job)
    time.sleep(3 * jobs.AGAIN)
    go_on.set()
    assert finished(job).state == "cancelled"
    assert done == [1]


def test_cancelling_at_any_moment_ends_the_job_once_and_leaves_the_worker(queue: Jobs) -> None:
    for i in range(150):
        job = queue.start("short", lambda progress: (progress("step", 0.5), sum(range(2000)), "/there")[2], "/")
        time.sleep(i % 30 * 1e-5)
        queue.cancel(job)
        assert finished(job).state in ("cancelled", "done")
    assert finished(queue.start("next", lambda _: "/there", "/")).state == "done"


def test_closing_stops_what_runs_and_what_waits() -> None:
    queue = Jobs()
    begun = threading.Event()

    def endless(_: object) -> str:
        begun.set()
        while True:
            sum(range(1000))

    running, waiting = queue.start("one", endless, "/"), queue.start("two", endless, "/")
    assert begun.wait(PATIENCE)
    queue.close(PATIENCE)
    assert (running.state, waiting.state) == ("cancelled", "cancelled")
    assert not any(thread.name == "shoal-jobs" and thread.is_alive() for thread in threading.enumerate())


PROFILED = """
import sys
from shoal.web.jobs import Jobs
queue = Jobs()
jobs = [queue.start("short", lambda _: "/", "/") for _ in range(3)]
begun = __import__("threading").Event()
def endless(_):
    begun.set()
    while True:
        sum(range(1000))
jobs.append(queue.start("endless", endless, "/"))
begun.wait(60)
queue.cancel(jobs[-1])
for job in jobs:
    assert job.over.wait(60)
def called():
    return "called"
sys.setprofile(lambda *_: None)
print(called())
"""


def test_after_a_job_python_looks_for_no_more_exceptions() -> None:
    """It would at every step, for good; where calls are profiled, CPython 3.11 would do nothing else."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=PATIENCE / 5)
    assert (done.stdout, done.stderr) == ("called\n", "")
