"""Whether the first line of a CSV file is one of column names, or a record like the others.

A reader that takes a record for names shows that person in errors, in the policy and in the certificate, and leaves
one record out of every count. So a first line that looks like the values below it stops reading with a question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from shoal.errors import DataError
from shoal.hierarchies.formats import date_formats

NUMERAL = re.compile(r"\s*[-+]?(\d+([.,]\d*)*|[.,]\d+)([eE][-+]?\d+)?\s*%?")
WORD = re.compile(r"[^\W\d][\w.-]*")
SENTENCE_WORDS = 4  # words: a question may be the name of a column, but hardly one of sentences
ALIKE_SHARE = 0.8  # share of the values of a column that look alike
CLEARLY = 0.7  # share of the names that differ from their values, above which the first line has names
RARE_CHANCE = 0.05  # chance that a record has new values throughout, from which on the first line is none


def require_header(name: str, names: Sequence[str], records: Sequence[Sequence[str]]) -> None:
    """Raise an error if the first line of a file looks like one of its first ``records``; no message quotes it."""
    values = [[record[j] for record in records if len(record) > j] for j in range(len(names))]
    n = sum(map(looks_like_values, names, values))
    n_differ = sum(map(differs_from_values, names, values))
    differs = n_differ > 0 or math.prod(map(chance_of_new, values)) <= RARE_CHANCE
    like_a_record = n > 0 and n_differ <= CLEARLY * len(names)  # in a column 'married', a value may be 'married', too
    if like_a_record or (records and not differs):
        columns = f"In {n} of {len(names)} columns it looks like one of the values below it"
        raise DataError(
            f"{name}: is the first line a line of column names? "
            f"{columns if n else 'In no column does it look different from the values below it'}",
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
        return _nearly_all(bool(NUMERAL.fullmatch(value)) for value in filled)
    if "://" in name or "@" in name or len(name.split()) >= SENTENCE_WORDS:
        return _nearly_all(("://" in value or "@" in value or len(value.split()) >= SENTENCE_WORDS) for value in filled)
    if not _has_digit(name):
        return False
    if forms := date_formats([name]):
        return _nearly_all(bool(set(forms) & set(date_formats([value]))) for value in filled[:100])
    if not WORD.fullmatch(name) and _nearly_all(_has_digit(value) and not NUMERAL.fullmatch(value) for value in filled):
        return True
    shape = _shape(name)
    return _nearly_all(_shape(value) == shape for value in filled)


def differs_from_values(name: str, values: Sequence[str]) -> bool:
    """Return whether a column name is written in another way than the values of its column."""
    name, filled = name.strip(), [text for value in values if (text := value.strip())]
    if not filled or not name:
        return False
    for trait in (_is_short, _has_digit, _begins_lower, _is_upper, _has_blank, _has_mark):
        n = sum(map(trait, filled))
        if (n <= (1 - ALIKE_SHARE) * len(filled)) if trait(name) else n >= ALIKE_SHARE * len(filled):
            return True
    return False


def chance_of_new(values: Sequence[str]) -> float:
    """Estimate how likely a further record has a value that no other has (Good and Turing, with one more seen)."""
    counts = Counter(text.strip() for text in values)
    return (sum(n == 1 for n in counts.values()) + 1) / (len(values) + 1)


def numbered_names(n: int) -> list[str]:
    """Return names for the columns of a file without a line of names."""
    return [f"column{j}" for j in range(1, n + 1)]


def _shape(text: str) -> str:
    """Return a text with its letters and digits made equal: AB-12 has the shape of XY-34."""
    return re.sub(r"[0-9]", "9", re.sub(r"[^\W\d_]+", "a", text))


def _is_short(text: str) -> bool:
    return len(text) <= 2


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _begins_lower(text: str) -> bool:
    return text[:1].islower()


def _is_upper(text: str) -> bool:
    return text.isupper()


def _has_blank(text: str) -> bool:
    return " " in text


def _has_mark(text: str) -> bool:
    return any(mark in text for mark in "_@/:")


def _nearly_all(answers: Iterable[bool]) -> bool:
    verdicts = list(answers)
    return sum(verdicts) >= ALIKE_SHARE * len(verdicts)
