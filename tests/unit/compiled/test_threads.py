"""Threads that share the parts of a computation: the order of results, errors, and who is left when one ends it."""

import threading
import time

import pytest

from shoal.compiled import threads
from shoal.compiled.threads import done_ahead, done_in_parts, go_on_if_wanted, kept_threads


@pytest.fixture(params=[1, 2, 4])
def n_threads(request, monkeypatch):
    monkeypatch.setattr(threads, "THREADS", request.param)
    return request.param


@pytest.mark.parametrize("n_parts", [0, 1, 2, 3, 17])
def test_results_come_in_the_order_of_the_parts(n_threads, n_parts):
    def work(part):
        time.sleep(0.002 * (part % 3))  # the later may be done before the earlier
        return 10 * part

    assert done_in_parts(work, range(n_parts)) == [10 * part for part in range(n_parts)]


def test_every_part_is_done_once(n_threads):
    done = []
    done_in_parts(done.append, range(50))
    assert sorted(done) == list(range(50))


def test_the_caller_works_too_and_no_thread_is_left(n_threads):
    who = done_in_parts(lambda _: (time.sleep(0.005), threading.get_ident())[1], range(12))
    assert threading.get_ident() in who
    assert len(set(who)) <= n_threads
    others = set(who) - {threading.get_ident()}
    assert not others & {thread.ident for thread in threading.enumerate()}


def test_one_part_needs_no_thread(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    assert done_in_parts(str, [7]) == ["7"]


def test_the_error_of_a_part_is_raised(n_threads):
    def work(part):
        if part == 3:
            raise ValueError("the third")
        return part

    with pytest.raises(ValueError, match="the third"):
        done_in_parts(work, range(6))


def test_an_interrupt_drops_what_has_not_begun(n_threads):
    done = []

    def work(part):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.02)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        done_in_parts(work, range(40))
    assert len(done) <= 2 * n_threads
    n_done = len(done)
    time.sleep(0.05)
    assert len(done) == n_done  # all threads have ended


def test_a_part_that_helps_can_notice_that_nobody_waits_for_it(monkeypatch):
    monkeypatch.setattr(threads, "THREADS", 2)
    begun, steps = threading.Event(), []

    def work(part):
        if threading.current_thread() is threading.main_thread():
            begun.wait(5)
            raise KeyboardInterrupt
        begun.set()
        for step in range(1000):
            go_on_if_wanted()
            steps.append(step)
            time.sleep(0.005)

    with pytest.raises(KeyboardInterrupt):
        done_in_parts(work, range(2))
    assert len(steps) < 1000
    go_on_if_wanted()  # who does not help goes on


def test_what_a_part_does_in_parts_is_done_by_its_own_thread(n_threads):
    def work(part):
        return {threading.get_ident(), *done_in_parts(lambda _: threading.get_ident(), range(3))}

    assert all(len(who) == 1 for who in done_in_parts(work, range(4)))
    done = done_in_parts(lambda _: (time.sleep(0.005), threading.get_ident())[1], range(12))
    assert len(set(done)) == n_threads  # afterwards the caller has help again


def test_threads_that_are_kept_help_again_and_again(n_threads):
    with kept_threads() as pool:
        for _ in range(3):
            assert done_in_parts(lambda part: -part, range(9), pool) == [-part for part in range(9)]
        kept = [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPool")]
        assert len(kept) == n_threads - 1
    assert not any(thread.is_alive() for thread in kept)


def test_results_ahead_are_as_many_as_there_are_threads(n_threads):
    begun = []
    results = done_ahead(lambda part: begun.append(part) or 10 * part, iter(range(11)))
    assert [next(results), next(results)] == [0, 10]
    assert len(begun) == max(2, n_threads)
    assert list(results) == [10 * part for part in range(2, 11)]


def test_no_more_threads_than_cores_that_may_be_used(monkeypatch):
    assert 1 <= threads.THREADS <= 2
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert threads._cores() == 1
