"""What a text says, however it is spelled: several spellings are one value, and some texts say nothing.

``Flu``, `` flu `` and ``flu`` with a Cyrillic letter are one value, and so are 0.3 and 0.30000000000000004, which
computing has left. An empty text, ``?`` or ``not asked`` means that a value is unknown, so the record does not
hide others of its class.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
from numpy.typing import NDArray

from shoal.notation.numbers import parse_number

Meaning = str | Decimal

PRECISE = Context(prec=12)  # significant digits of a number with decimals; further ones are noise of computing

# Texts for "unknown", compared as ``plain_value`` returns them, without blanks and marks around them.
NOTHING = frozenset((
    "", "declined", "desconocido", "do not know", "don't know", "inconnu", "k. a", "k.a", "keine angabe",
    "keine antwort", "missing", "n.a", "n.a.", "n/a", "na", "nan", "ne sait pas", "nicht bekannt", "no answer",
    "no contesta", "no data", "no response", "no sabe", "non renseigne", "non renseigné", "not answered",
    "not applicable", "not asked", "not available", "not known", "not recorded", "not reported", "not specified",
    "not stated", "ns/nc", "null", "prefer not to say", "refusal", "refused", "sans reponse", "sans réponse",
    "sin respuesta", "suppressed", "unbekannt", "unk", "unknown", "unspecified", "weiss nicht",
))  # fmt: skip
MARKS = " \t\n\r\v\f?*.-_#<>()[]{}/\\'\""

# Letters of other alphabets that look like Latin ones; both cases, as a text is lowered first.
LOOKS_LATIN = str.maketrans(
    "авекмнорстухіјѕԁԛԝҽһαβεζηικμνορτυχϲɡı",
    "abekmhopctyxijsdqwehabezhikmvoptuxcgi",
)


def plain_value(text: str | None) -> Meaning:
    """Return what a text says: a number, or the text in one spelling; nothing for a missing one.

    Letters of either case, blanks around and between words, the ways of Unicode to encode the same characters, letters
    that look alike, ``1`` and ``1.0``, and digits that only computing has left are no difference.
    """
    if text is None:
        return ""
    if not text.isascii():  # compatible forms, and marks that are not seen, such as a zero-width blank
        text = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    number = parse_number(text) if any(c.isdigit() for c in text[:4]) else None
    if number is not None:
        return number if number == number.to_integral_value() else PRECISE.plus(number)
    plain = " ".join(text.split()).casefold()
    return plain if plain.isascii() else plain.translate(LOOKS_LATIN)


def says_nothing(text: str | None) -> bool:
    """Return whether a text means that the value is unknown."""
    content = plain_value(text)
    return isinstance(content, str) and (content in NOTHING or content.strip(MARKS) in NOTHING)


def spelled_alike(texts: Sequence[str | None]) -> NDArray[np.int32]:
    """Return for each text the number of its value; texts that say the same get the same number."""
    numbered: dict[Meaning, int] = {}
    return np.array([numbered.setdefault(plain_value(text), len(numbered)) for text in texts], np.int32)


def numbered_meanings(texts: Sequence[str | None]) -> NDArray[np.int32]:
    """Return for each text the number of its value, and −1 for one that says nothing."""
    numbered: dict[Meaning, int] = {}
    return np.array(
        [-1 if says_nothing(text) else numbered.setdefault(plain_value(text), len(numbered)) for text in texts],
        np.int32,
    )
