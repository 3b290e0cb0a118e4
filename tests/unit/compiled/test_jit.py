"""Compiled loops are kept for the next run, and two processes that keep them at once do not mix them up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from shoal.compiled import jit

LOOP = """
from shoal.compiled.jit import compiled


@compiled
def half(x):
    return x / 2 if x > 1 else x
"""
# Between the choice of a name and the end of writing there is time for another process to choose the same.
KEPT = """
import sys, time
from numba.core.caching import IndexDataCacheFile

for name in ("_save_index", "_save_data"):
    def slowly(self, *arguments, act=getattr(IndexDataCacheFile, name)):
        time.sleep(0.3)
        return act(self, *arguments)
    setattr(IndexDataCacheFile, name, slowly)
from loop import half

x = float("0.25") if sys.argv[1] == "float" else int("3")
print("ready", flush=True)
sys.stdin.readline()
print(half(x), sum(half.stats.cache_hits.values()))
"""


@pytest.mark.long
def test_two_processes_keep_a_loop_for_different_types_at_once(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "kept")

    def begun(kind: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", KEPT, kind]
        return subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        )

    for hits in (0, 1):  # the second time each finds its own
        both = [begun("float"), begun("int")]
        for process in both:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in both:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate(timeout=300)[0] for process in both]
        assert told == [f"0.25 {hits}\n", f"1.5 {hits}\n"]


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """The loop as one more process has it, which has compiled nothing yet."""
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))

    def load() -> Any:
        found = spec_from_file_location("loop", tmp_path / "loop.py")
        assert found is not None
        assert found.loader is not None
        module = module_from_spec(found)
        found.loader.exec_module(module)
        return module.half

    return load


def test_who_waited_for_another_process_takes_what_it_compiled(
    begun: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = begun(), begun()
    turn = jit._turn

    @contextmanager
    def late_turn(cache: Any) -> Iterator[bool]:
        if cache is second._cache:
            assert first(3) == 1.5  # while the second waits
        with turn(cache) as granted:
            yield granted

    monkeypatch.setattr(jit, "_turn", late_turn)
    assert second(3) == 1.5
    assert (sum(first.stats.cache_hits.values()), sum(second.stats.cache_hits.values())) == (0, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such lock")
def test_nobody_waits_forever_for_a_process_that_hangs(
    begun: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    half = begun()
    index = Path(half._cache._cache_file._index_path)
    lock = Path(f"{index}.lock")
    with lock.open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        monkeypatch.setattr(jit, "WAIT", 0.05)
        assert begun()(3) == 1.5
        assert not index.exists()  # what cannot be cached safely is not cached
    monkeypatch.setattr(jit, "WAIT", 300)
    assert begun()(3) == 1.5  # the file that is left locks nobody out
    assert index.exists()
    assert begun()(3) == 1.5
    with lock.open("a", encoding="utf-8") as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)  # after compiling and after loading, others have their turn


OF_A_CLASS = """
from typing import NamedTuple

from shoal.compiled.jit import compiled


class {name}(NamedTuple):
    x: int


@compiled
def double(it):
    return it.x * 2


print(double({name}(4)), sum(double.stats.cache_hits.values()))
"""


@pytest.mark.long
def test_what_was_kept_of_a_class_that_is_gone_is_compiled_anew(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "kept")
    told, source = [], tmp_path / "pairs.py"
    for name, when in (("Old", 10**9), ("Old", 10**9), ("New", 11 * 10**8), ("New", 11 * 10**8)):
        source.write_text(OF_A_CLASS.format(name=name), encoding="utf-8")
        os.utime(source, (when, when))  # two of one size in one second would be taken for one by the import
        done = subprocess.run(
            [sys.executable, "-c", "import pairs"], capture_output=True, text=True, check=True, env=environment
        )
        told.append(done.stdout)
    assert told == ["8 0\n", "8 1\n", "8 0\n", "8 1\n"]


TIERED = """
import sys

from shoal.compiled.jit import SHORT, compiled_when_long, compiled_within


@compiled_within
def twice(x):
    return 2 * x


@compiled_when_long(lambda n: n)
def summed(n):
    total = 0
    for i in range(n):
        total += twice(i)
    return total


def ways():
    return "numba" in sys.modules, summed._run == summed._interpreted


print(summed(10), *ways(), summed(SHORT - 9), *ways(), summed(10))
print(sum(summed.stats.cache_hits.values()))
import numba
from shoal.compiled.jit import compiled


@compiled
def another(x):
    return x


another(1)
again = type(summed)(summed.py_func, summed._options, summed._steps)
print(again(10), again._run == again._interpreted)
"""


def test_a_loop_is_compiled_again_if_one_that_it_calls_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its stamp is in whole seconds
    monkeypatch.syspath_prepend(tmp_path)
    outer = "from inner import LIMIT, step\nfrom shoal.compiled.jit import compiled\n\n"
    outer += "@compiled\ndef whole(x):\n    return step(x) + LIMIT\n"
    (tmp_path / "outer.py").write_text(outer, encoding="utf-8")

    def answer(inner: str) -> tuple[int, int]:
        (tmp_path / "inner.py").write_text(inner, encoding="utf-8")
        for name in ("inner", "outer"):
            sys.modules.pop(name, None)
        invalidate_caches()
        whole = import_module("outer").whole
        return whole(1), sum(whole.stats.cache_hits.values())

    inner = "from shoal.compiled.jit import compiled_within\n\nLIMIT = 10\n\n"
    inner += "@compiled_within\ndef step(x):\n    return x + 1\n"
    assert answer(inner) == (12, 0)
    assert answer(inner.replace("x + 1", "x + 22")) == (33, 0)
    assert answer(inner.replace("x + 1", "x + 22").replace("10", "100")) == (123, 0)
    sys.modules.pop("outer")
    unchanged = import_module("outer").whole
    assert (unchanged(1), sum(unchanged.stats.cache_hits.values())) == (123, 1)


PARTS = """
from __future__ import annotations

import numpy as np
from shoal.compiled.jit import compiled, compiled_within

Array = np.ndarray


@compiled_within
def ratio(a: int, b: int) -> float:
    if b < 0:
        raise ValueError("negative")
    return a / b


@compiled_within
def mean(xs: Array, n: int) -> float:
    total = 0
    for i in range(xs.shape[0]):
        total += xs[i]
    return ratio(total, n)


@compiled_within
def middle(xs: Array) -> float:
    room = np.zeros(xs.shape[0], np.int64)
    for i in range(xs.shape[0]):
        room[xs.shape[0] - 1 - i] = xs[i]
    return float(room[xs.shape[0] // 2])


@compiled_within
def rest(xs: Array) -> Array:
    return xs[1:]


@compiled
def fill(xs: Array, n: int, out: Array) -> None:
    out[:1] = mean(xs, n)
    out[1] = ratio(n, 4)
    out[2] = mean(xs[1:], n)


@compiled
def middle_of_rest(xs: Array) -> float:
    return middle(rest(xs)) + middle(rest(rest(xs)))


@compiled
def doubled(xs: Array) -> Array:
    found = np.empty(xs.shape[0], np.int64)
    for i in range(xs.shape[0]):
        found[i] = 2 * xs[i]
    return rest(found)
"""


def test_loops_of_parts_are_right_whether_they_make_arrays_or_only_fill_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "parts.py").write_text(PARTS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def answer() -> list[int]:
        sys.modules.pop("parts", None)
        parts = import_module("parts")
        loops = parts.fill, parts.middle_of_rest, parts.doubled
        told.clear()
        assert [loop.dispatcher().targetoptions["_nrt"] for loop in loops] == [makes_arrays, True, True]
        xs, out = np.arange(3, 10), np.zeros(3)
        before = sys.getrefcount(xs)
        with jit.announcing(lambda: told.append("compiling")):
            for n in (7, 2):
                parts.fill(xs, n, out)
                assert out.tolist() == [42 / n, n / 4, 39 / n]
                assert parts.middle_of_rest(xs) == 6 + 7
                found = parts.doubled(xs)
                assert found.tolist() == [8, 10, 12, 14, 16, 18]
        assert sys.getrefcount(xs) == before
        assert sys.getrefcount(found) == sys.getrefcount(out)
        for n, error in ((0, ZeroDivisionError), (-1, ValueError)):
            with pytest.raises(error):
                parts.fill(xs, n, out)
        hits = [sum(loop.stats.cache_hits.values()) for loop in loops]
        assert len(told) == hits.count(0)
        return hits

    told: list[str] = []
    makes_arrays = False
    assert answer() == [0, 0, 0]
    assert answer() == [1, 1, 1]


CALLED = """
import numpy as np
from shoal.compiled.jit import compiled, compiled_within


@compiled_within
def chosen(i, first):
    return 2 * i if first else i - 7


@compiled
def kept(i):
    return 3 * i


@compiled
def total(shorts, n, x):
    found = chosen(0, True) + chosen(1, False) + chosen(n, True) + kept(2) + kept(n)
    for i in range(shorts.shape[0]):
        found += chosen(shorts[i], i > 1) + kept(shorts[i])
    return found + chosen(x, True)
"""


def test_loops_are_compiled_once_for_constants_and_numbers_of_32_and_of_64_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "called.py").write_text(CALLED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("called", None)
    called = import_module("called")
    shorts = np.array([2**31 - 1, -5, 2**31 - 2], np.int32)
    assert called.total(shorts, 2**40, 0.5) == called.total.py_func(shorts.astype(np.int64), 2**40, 0.5)
    assert [len(loop.dispatcher().signatures) for loop in (called.chosen, called.kept)] == [
        2,
        1,
    ]  # 64 bits, and a float


def test_a_loop_is_interpreted_until_it_is_long(tmp_path: Path) -> None:
    (tmp_path / "tiers.py").write_text(TIERED, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "kept")
    done = [
        subprocess.run(
            [sys.executable, "-c", "import tiers"], capture_output=True, text=True, check=True, env=environment
        )
        for _ in range(2)
    ]
    n = jit.SHORT - 9
    first = f"90 False True {n * (n - 1)} True False 90\n"
    # What was compiled once is loaded by whoever has Numba already, however short the loop.
    assert [each.stdout for each in done] == [f"{first}0\n90 False\n", f"{first}1\n90 False\n"]
