"""A part of benchmarks/published_bytes.py: what a check calls safe is safe as the file stores it."""

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "published_bytes.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("published_bytes", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


files = _loaded()


@pytest.mark.parametrize("name", files.VARIANTS)
def test_what_is_called_safe_is_safe_as_it_is_stored(name: str, tmp_path: Path) -> None:
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made = files.VARIANTS[name](folder, random.Random(f"{seed} {name}"))
        for engine in files.engines_of(made.path):
            assert (files.verdict_of(made, engine) == "ready") == made.is_safe, engine
