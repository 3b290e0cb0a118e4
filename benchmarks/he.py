"""How much longer does it take to compute on ciphertexts than on numbers, and how large do they get?

    python benchmarks/he.py [--rows N] [--repeats N]

Invented people with two columns; the CPU seconds of the fastest of several repeats, in one process, for each step of
the exact scheme (BFV) and of the approximate one (CKKS).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import he

BOUNDS = {"age": (0, 120), "stay": (0, 60)}
WEIGHTS = {"age": 0.5, "stay": 2}


def fastest(step: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest repeat, and its result."""
    seconds, result = [], None
    for _ in range(repeats):
        start = time.process_time()
        result = step()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def main() -> None:
    """Print a line per step and scheme."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    age = rng.integers(0, 110, arguments.rows)
    stay = np.clip(age // 10 + rng.integers(0, 9, arguments.rows), 0, 60)
    table = pa.table({"age": age, "stay": stay})
    design = np.c_[np.ones(arguments.rows), age]
    steps: list[tuple[str, dict[str, Any], Callable[[], Any]]] = [
        ("sum", {"sum": ["age"]}, lambda: int(age.sum())),
        ("mean", {"mean": ["age"]}, lambda: float(age.mean())),
        ("score of every row", {"score": {"risk": WEIGHTS}}, lambda: float((0.5 * age + 2 * stay).sum())),
        ("regression", {"regression": [("stay", "age")]}, lambda: np.linalg.lstsq(design, stay, rcond=None)[0]),
    ]
    for scheme in ("bfv", "ckks"):
        with tempfile.TemporaryDirectory() as folder:
            measure(scheme, table, steps, arguments.repeats, Path(folder))


def measure(
    scheme: str, table: pa.Table, steps: list[tuple[str, dict[str, Any], Callable[[], Any]]], repeats: int, folder: Path
) -> None:
    """Print the lines of one scheme."""
    seconds, files = fastest(partial(he.make_key_pair, folder / "own", scheme=scheme, force=True), repeats)
    secret, public = he.EncryptionKey.load(files[0], secret=True), he.EncryptionKey.load(files[1])
    print(f"{scheme}: keys {seconds:.2f} s, the public one {files[1].stat().st_size / 1e6:.2f} MB")
    seconds, encrypted = fastest(partial(he.encrypt, table, public, bounds=BOUNDS), repeats)
    size = encrypted.save(folder / "table").stat().st_size
    print(
        f"{scheme}: encrypt {len(table)} rows of two columns {seconds:.2f} s, {size / 1e6:.1f} MB, "
        f"{size / (16 * len(table)):.0f} times the numbers",
        flush=True,
    )
    for name, request, plain in steps:
        bare, _ = fastest(plain, repeats)
        computing, result = fastest(partial(he.compute, encrypted, public, **request), repeats)
        decrypting, opened = fastest(partial(he.decrypt, result, secret), repeats)
        error = max((_largest(value) for value in opened.errors.values()), default=0.0)
        print(
            f"{scheme}: {name}: compute {computing:.3f} s, decrypt {decrypting:.3f} s; plain {bare:.5f} s, "
            f"{(computing + decrypting) / max(bare, 1e-6):,.0f} times less; error at most {error:.1g}",
            flush=True,
        )


def _largest(errors: Any) -> float:
    return max(errors.values()) if isinstance(errors, dict) else float(errors)


if __name__ == "__main__":
    main()
