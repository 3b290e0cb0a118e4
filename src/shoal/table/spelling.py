"""How the cells of a column are spelled: which texts stand for a missing value, and how its numbers are written.

Nothing is missing and no mark is dropped unless a policy says so. What is read so is read so again: a missing value is
null, 1.234,5 is 1234.5, and neither becomes anything else the next time, so a release is checked with the policy that
made it. Where points mark thousands, 123,456 is read as 123.4560: as 123.456 it would be taken for 123456.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from shoal.table.propose import NUMBER, date_formats, sample

BLANKS = " \t\n\r\v\f"  # around a text that stands for a missing value they do not count
MARKS = {".": ".", ",": ",", " ": " \u00a0\u202f", "'": "'’"}  # with what else is written for them


@dataclass(frozen=True)
class Spelling:
    """How the cells of one column are spelled."""

    missing: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether cells are what they look like."""
        return self == Spelling()

    @cached_property
    def numeral(self) -> str | None:
        """What numbers look like that must be written in another way: a regular expression that all engines know."""
        unmarked = f"[0-9]+{self.decimal}[0-9]+" if self.decimal != "." else ""
        if self.thousands is None:
            return f"^[-+]?{unmarked}$" if unmarked else None
        point = "[.]" if self.decimal == "." else self.decimal
        marked = f"[1-9][0-9]{{0,2}}([{MARKS[self.thousands]}][0-9]{{3}})+({point}[0-9]+)?"
        return f"^[-+]?({'|'.join(filter(None, (marked, unmarked)))})$"

    @property
    def mark(self) -> Literal[".", ","] | None:
        """The decimal mark, where a mark of its numbers is named."""
        return "," if self.decimal == "," else None if self.thousands is None else "."

    @property
    def dropped(self) -> str:
        """The marks that go."""
        return "" if self.thousands is None else MARKS[self.thousands]

    @property
    def ambiguous(self) -> str | None:
        """What a number must not look like afterwards, as its decimals would be taken for thousands."""
        return "^[-+]?[1-9][0-9]{0,2}[.][0-9]{3}$" if self.thousands == "." else None

    def read(self, text: str | None) -> str | None:
        """What a text says; None where it is missing."""
        if text is None or (self.missing and text.strip(BLANKS) in self.missing):
            return None
        if self.numeral is None or "\n" in text or not re.search(self.numeral, text):
            return text
        plain = text.translate(dict.fromkeys(map(ord, self.dropped))).replace(self.decimal, ".")
        if self.ambiguous is not None and re.search(self.ambiguous, plain):
            plain += "0"
        return None if plain in self.missing else plain  # as it would be the next time


# ── guessing ─────────────────────────────────────────────────────────────────────────────────────────────

# In a column of numbers or dates none of these is a value.
CLEAR = frozenset(("", "N/A", "n/a", "N.A.", "n.a.", "#N/A", "<NA>"))  # nor in one of words
TOKENS = CLEAR.union(
    ("NA", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", "--", ".", "?"),
    ("missing", "Missing", "unknown", "Unknown"),
)
STYLES: tuple[tuple[str, str | None], ...] = (
    (",", "."), (",", " "), (",", "'"), (".", ","), (".", "'"), (".", " "), (",", None),
)  # fmt: skip


def guess(texts: Sequence[str]) -> Spelling:
    """What the distinct texts of a column suggest."""
    found = sorted({text.strip(BLANKS) for text in texts} & TOKENS)
    rest = [text for text in texts if text.strip(BLANKS) not in TOKENS]
    decimal, thousands = _style(rest)
    if (decimal, thousands) == (".", None) and rest:
        some = sample(rest)
        if not (all(map(NUMBER.fullmatch, some)) or date_formats(some)):
            found = [token for token in found if _no_word(token, rest)]
    return Spelling(tuple(found), decimal, thousands)


def _no_word(token: str, rest: Sequence[str]) -> bool:
    """Whether a text stands for a missing value among words: NA may be a country, and - a blood group's."""
    if token in CLEAR:
        return True
    if token in ("-", "--", ".", "?"):
        return min(map(len, rest)) > 1
    return token == "NA" and not any(len(text) == 2 and text.isupper() for text in rest)


def _style(texts: Sequence[str]) -> tuple[str, str | None]:
    """Decimal and thousands mark of a column in which all are numbers, and some have one that is not plain."""
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
        # Codes of one length, such as 123 456 789, are no numbers.
        if thousands is None or (with_marks and len(set(map(len, texts))) > 1):
            return decimal, thousands
    return ".", None


def _many_points(texts: Sequence[str]) -> bool:
    return any(text.count(".") > 1 for text in texts)


def shared(guessed: Mapping[str, Spelling], texts: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], set[str]]:
    """All texts that stand for a missing value somewhere, and the columns in which one of them is a value."""
    missing = tuple(sorted({token for spelling in guessed.values() for token in spelling.missing}))
    apart = {
        name
        for name, spelling in guessed.items()
        if {text.strip(BLANKS) for text in texts[name]} & set(missing) - set(spelling.missing)
    }
    return missing, apart
