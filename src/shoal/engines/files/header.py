"""Whether the first line of a CSV file is one of column names, or a record like the others.

A reader that takes a record for names shows that person in errors, in the policy and in the certificate, and leaves
one record out of every count. So a first line that looks like the values below it stops reading with a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from shoal.errors import DataError
from shoal.table.propose import date_formats

NUMERAL = re.compile(r"\s*[-+]?(\d+([.,]\d*)*|[.,]\d+)([eE][-+]?\d+)?\s*%?")
SENTENCE = 4  # words: a question may be the name of a column, but hardly one of sentences
LIKE = 0.8  # share of the values of a column that look alike


def require_header(name: str, names: Sequence[str], records: Sequence[Sequence[str]]) -> None:
    """Raise an error if the first line of a file looks like one of its first ``records``; no message quotes it."""
    n = sum(
        looks_like_values(column, [record[j] for record in records if len(record) > j])
        for j, column in enumerate(names)
    )
    if n:
        columns = f"{n} of {len(names)} columns"
        raise DataError(
            f"{name}: is the first line a line of column names? In {columns} it looks like one of the values below it",
            "header=True if it has the names of the columns, header=False if it is a record; "
            "rename columns that are called like their values",
            option="--header, --no-header",
        )


def looks_like_values(name: str, values: Sequence[str]) -> bool:
    """Return whether a column name is a value of its column, or a number, date or code as its values are."""
    name, filled = name.strip(), [text for value in values if (text := value.strip())]
    if not filled or not name:
        return False
    if name in filled:
        return True
    if NUMERAL.fullmatch(name):
        return _most(bool(NUMERAL.fullmatch(value)) for value in filled)
    if "://" in name or "@" in name or len(name.split()) >= SENTENCE:
        return _most(("://" in value or "@" in value or len(value.split()) >= SENTENCE) for value in filled)
    if not any(map(str.isdigit, name)):
        return False
    if forms := date_formats([name]):
        return _most(bool(set(forms) & set(date_formats([value]))) for value in filled[:100])
    shape = _shape(name)
    return _most(_shape(value) == shape for value in filled)


def numbered_names(n: int) -> list[str]:
    """Return names for the columns of a file without a line of names."""
    return [f"column{j}" for j in range(1, n + 1)]


def _shape(text: str) -> str:
    """Return a text with its letters and digits made equal: AB-12 has the shape of XY-34."""
    return re.sub(r"[0-9]", "9", re.sub(r"[^\W\d_]+", "a", text))


def _most(answers: Iterable[bool]) -> bool:
    found = list(answers)
    return sum(found) >= LIKE * len(found)
