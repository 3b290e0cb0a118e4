"""The pictures of the algorithms are what the algorithms do, and the page shows them all."""

import importlib.util
from pathlib import Path

import pytest

from shoal.search import SEARCHES

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("draw", DOCS / "draw.py")
assert spec is not None
assert spec.loader is not None
draw = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw)


@pytest.mark.parametrize("algorithm", draw.ALGORITHMS)
def test_a_picture_is_what_its_algorithm_does(algorithm: str) -> None:
    assert (DOCS / "pictures" / f"{algorithm}.svg").read_text(encoding="utf-8") == draw.drawn(algorithm)


def test_every_algorithm_has_its_paragraph() -> None:
    page = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    assert [name for name in draw.ALGORITHMS if f'\n### {name}\n\n<img src="pictures/{name}.svg"' not in page] == []
    assert [name for name in SEARCHES if f"`{name}`" not in page and f"### {name}" not in page] == []


def test_the_taxonomy_has_a_place_for_every_algorithm() -> None:
    page = (DOCS / "taxonomy.md").read_text(encoding="utf-8")
    assert [name for name in SEARCHES if f"`{name}`" not in page] == []
