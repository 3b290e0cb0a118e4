"""Sequences of releases with one ledger, attacked by a program of its own that has everything published."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

import shoal
from examples import THOROUGH


def intruder() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "output_intruder.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("first", range(0, 96, 12) if THOROUGH else [0])
def test_nothing_follows_from_all_that_was_published_with_one_ledger(first: int, tmp_path: Path) -> None:
    program = intruder()
    n_published = 0
    for seed in range(first, first + 12):
        published, found = program.sequence(seed, tmp_path)
        assert not found, seed
        n_published += published
    assert n_published > 12


def test_what_totals_tell_of_several_hidden_cells_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this sequence, two hidden cells are safe each, and two people have most of what they are together."""
    program = intruder()
    assert program.sequence(48, tmp_path)[1] == []
    monkeypatch.setattr("shoal.results.output.judging.Judge.unprotected", lambda *_: [])
    (tmp_path / "48.json").unlink()
    for path in tmp_path.glob("48-*.csv"):
        path.unlink()
    assert program.sequence(48, tmp_path)[1]


def test_the_intruder_finds_what_is_published_without_a_ledger(tmp_path: Path) -> None:
    """The difference of two conditions is two people, and income less wages is one person's capital."""
    program = intruder()
    rng = np.random.default_rng(0)
    n = 40
    wages, capital = rng.uniform(10, 50, n), np.where(np.arange(n) == 3, 900.0, 1.0)
    rows = pa.table(
        {
            "a": ["x"] * 20 + ["y"] * 20,
            "b": ["u"] * n,
            "d": [1] * 2 + [0] * 38,
            "period": [1] * n,
            "wages": wages,
            "capital": capital,
            "income": wages + capital,
        }
    )
    every = program.Intruder(rows.to_pylist())
    for asked in ({"by": ["a"]}, {"by": ["a"], "where": ["d = 0"]}):
        found = shoal.check_output(rows, **asked, min_count=program.MIN_COUNT, sensitive=[])
        every.read_table(found, asked)
    assert any("2 people" in each for each in every.disclosures())
    every = program.Intruder(rows.to_pylist())
    for asked in ({"by": ["a"], "value": "income"}, {"by": ["a"], "value": "wages"}):
        found = shoal.check_output(rows, **asked, statistics=["sum"], min_count=program.MIN_COUNT, sensitive=[])
        every.read_table(found, asked)
    assert any("capital" in each for each in every.disclosures())
