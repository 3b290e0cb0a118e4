"""The colours of charts, and their labels: shortened or broken into two lines, with the room that they take.

A chart has the colours of ``PALETTE``, each the value of an attribute, so that a style sheet finds them by that value
and puts others in their place where the page is dark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from shoal.text.figures import visible

PALETTE = {
    "ink": "#1b2430",
    "muted": "#52606e",
    "grid": "#d5dbe2",
    "accent": "#0b5cad",
    "second": "#b4530a",
    "good": "#0a6b3b",
    "bad": "#a61b1c",
}
WIDTH = 300  # of a whole chart: it fits into the narrowest page at its natural size
LINE = 18  # letters of a label side by side
# The states of a node: their colours and symbols.
STATES = {"unsafe": ("second", "cross"), "safe": ("accent", "circle"), "chosen": ("good", "diamond")}


def label_room(names: Sequence[str], max_letters: int = LINE) -> int:
    """Return the pixels for the longest label in the widest common font, which may not be the measured one."""
    return 12 + 8 * max(
        (min(max_letters, letter_widths(line)) for name in names for line in wrapped_label(name, max_letters)),
        default=0,
    )


def rows_height(row: int, names: Sequence[str]) -> int:
    """Return the pixels for a row per name; a name of two lines needs more."""
    return len(names) * (max(row, 34) if any(len(wrapped_label(name)) > 1 for name in names) else row)


def letter_widths(text: str) -> int:
    """Return the width of a text in letters: Chinese, Japanese and Korean ones count twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _on_one_line(text: str) -> str:
    return visible(text).replace("\n", " ").replace("\t", " ")


def cut_label(text: str, max_letters: int = LINE) -> str:
    """Return a text of at most so many letters."""
    text = _on_one_line(text)
    if letter_widths(text) <= max_letters:
        return text
    ends = accumulate(letter_widths(letter) for letter in text)
    return text[: sum(end < max_letters for end in ends)] + "…"


def wrapped_label(text: str, max_letters: int = LINE) -> list[str]:
    """Return one line, or two if it is long and can be broken between words."""
    text = _on_one_line(text)
    if letter_widths(text) <= max_letters:
        return [text]
    words = [i + 1 for i, letter in enumerate(text) if letter in " -_"]
    breaks = [end for end in words if 0 < letter_widths(text[:end].rstrip()) <= max_letters]
    if not breaks:
        return [cut_label(text, max_letters)]
    return [text[: breaks[-1]].rstrip(), cut_label(text[breaks[-1] :], max_letters)]


def style_rules() -> str:
    """Return style rules that replace the colours of the charts by those of the page."""
    return "\n".join(
        f'.chart [{attribute}="{colour}"] {{ {attribute}: var(--{name}); }}'
        for name, colour in PALETTE.items()
        for attribute in ("fill", "stroke")
    )
