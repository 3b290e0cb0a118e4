"""How the cells of a column are spelled: which texts mean a missing value, and how numbers are written.

Nothing is missing and no mark is dropped unless a policy says so. Reading is idempotent: a missing value is null,
1.234,5 is 1234.5, and neither changes the next time, so a release is checked with the policy that made it. If points
mark thousands, 123,456 is read as 123.4560: as 123.456 it would be read as 123456 the next time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from shoal.hierarchies.formats import NUMBER, date_formats, sample

BLANKS = " \t\n\r\v\f"  # ignored around a text that means a missing value
MARKS = {".": ".", ",": ",", " ": " \u00a0\u202f", "'": "'’"}  # with their alternative spellings


@dataclass(frozen=True)
class Spelling:
    """The spelling of the cells of one column."""

    missing: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether cells are read literally."""
        return self == Spelling()

    @cached_property
    def numeral(self) -> str | None:
        """A regular expression, valid in all engines, for numbers that must be rewritten."""
        unmarked = f"[0-9]+{self.decimal}[0-9]+" if self.decimal != "." else ""
        if self.thousands is None:
            return f"^[-+]?{unmarked}$" if unmarked else None
        point = "[.]" if self.decimal == "." else self.decimal
        marked = f"[1-9][0-9]{{0,2}}([{MARKS[self.thousands]}][0-9]{{3}})+({point}[0-9]+)?"
        return f"^[-+]?({'|'.join(filter(None, (marked, unmarked)))})$"

    @property
    def mark(self) -> Literal[".", ","] | None:
        """The decimal mark, if a mark of the numbers is named."""
        return "," if self.decimal == "," else None if self.thousands is None else "."

    @property
    def dropped(self) -> str:
        """The marks that are removed."""
        return "" if self.thousands is None else MARKS[self.thousands]

    @property
    def ambiguous(self) -> str | None:
        """What a rewritten number must not look like, because its decimals would be read as thousands."""
        return "^[-+]?[1-9][0-9]{0,2}[.][0-9]{3}$" if self.thousands == "." else None

    def read(self, text: str | None) -> str | None:
        """Parse a text; None if it means a missing value."""
        if text is None or (self.missing and text.strip(BLANKS) in self.missing):
            return None
        if self.numeral is None or "\n" in text or not re.search(self.numeral, text):
            return text
        plain = text.translate(dict.fromkeys(map(ord, self.dropped))).replace(self.decimal, ".")
        if self.ambiguous is not None and re.search(self.ambiguous, plain):
            plain += "0"
        return None if plain in self.missing else plain  # as it would be the next time


# ── guessing ─────────────────────────────────────────────────────────────────────────────────────────────

# In a column of numbers or dates, none of these is a value.
CLEAR = frozenset(("", "N/A", "n/a", "N.A.", "n.a.", "#N/A", "<NA>"))  # nor in a column of words
INFINITE = ("inf", "-inf", "Inf", "-Inf")  # the result of a division by 0
TOKENS = CLEAR.union(
    ("NA", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", "--", ".", "?"),
    ("missing", "Missing", "unknown", "Unknown"),
    INFINITE,
)
STYLES: tuple[tuple[str, str | None], ...] = (
    (",", "."), (",", " "), (",", "'"), (".", ","), (".", "'"), (".", " "), (",", None),
)  # fmt: skip


def guess(texts: Sequence[str]) -> Spelling:
    """Guess the spelling of a column from its distinct texts."""
    missing = sorted({text.strip(BLANKS) for text in texts} & TOKENS)
    rest = [text for text in texts if text.strip(BLANKS) not in TOKENS]
    decimal, thousands = _style(rest)
    if (decimal, thousands) == (".", None) and rest:
        values = sample(rest)
        if not (all(map(NUMBER.fullmatch, values)) or date_formats(values)):
            missing = [token for token in missing if _no_word(token, rest)]
    return Spelling(tuple(missing), decimal, thousands)


def _no_word(token: str, rest: Sequence[str]) -> bool:
    """Return whether a text means a missing value among words: NA may be a country, and - part of a blood group."""
    if token in CLEAR:
        return True
    if token in ("-", "--", ".", "?"):
        return min(map(len, rest)) > 1
    return token == "NA" and not any(len(text) == 2 and text.isupper() for text in rest)


def _style(texts: Sequence[str]) -> tuple[str, str | None]:
    """Return the decimal and thousands mark of a column of numbers, some of which are not in plain notation."""
    if not any(mark in text for text in sample(texts) for mark in ",.' \u00a0\u202f’"):
        return ".", None
    whole = re.compile("[-+]?[0-9]+")
    for decimal, thousands in STYLES:
        form = Spelling((), decimal, thousands)
        marked = re.compile(form.numeral or "")
        plain = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?") if decimal == "." else whole
        if not all(marked.fullmatch(text) or plain.fullmatch(text) for text in texts):
            continue
        if decimal == "," and not any("," in text for text in texts) and not _many_points(texts):
            continue
        with_marks = [text for text in texts if any(mark in text for mark in form.dropped)]
        # Codes of equal length, such as 123 456 789, are not numbers.
        if thousands is None or (with_marks and len(set(map(len, texts))) > 1):
            return decimal, thousands
    return ".", None


def _many_points(texts: Sequence[str]) -> bool:
    return any(text.count(".") > 1 for text in texts)


def missing_texts(
    guessed: Mapping[str, Spelling], texts: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], set[str]]:
    """Return all texts that mean a missing value in some column, and the columns in which one of them is a value."""
    missing = tuple(sorted({token for spelling in guessed.values() for token in spelling.missing}))
    with_value = {
        name
        for name, spelling in guessed.items()
        if {text.strip(BLANKS) for text in texts[name]} & set(missing) - set(spelling.missing)
    }
    return missing, with_value
