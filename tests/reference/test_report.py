"""The report of Adult, opened in a browser."""

from pathlib import Path

import pytest

import shoal
from browsing import browser, opened, require_readable

__all__ = ["browser"]  # a fixture

QUASI = ("age", "education", "marital-status", "native-country", "race", "sex", "workclass")


@pytest.mark.parametrize(
    ("algorithm", "width", "scheme"),
    [("optimal", 360, "dark"), ("mondrian", 1440, "light")],
)
def test_adult(browser, shared, tmp_path: Path, algorithm: str, width: int, scheme: str) -> None:
    adult = shared / "data" / "adult"
    columns = {name: {"role": "quasi", "hierarchy": f"adult_hierarchy_{name}.csv"} for name in QUASI}
    columns |= {name: {"role": "sensitive"} for name in ("occupation", "salary-class")}
    fields = {
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"max_suppression": 0.02, "algorithm": algorithm},
    }
    path = tmp_path / "report.html"
    shoal.anonymize(adult / "adult.csv", shoal.Policy.of(fields, adult)).report(path)
    assert path.stat().st_size < 3_000_000
    page, events = opened(browser, path, width, scheme)
    assert events == [path.as_uri()]
    require_readable(page, width)
    page.context.close()
