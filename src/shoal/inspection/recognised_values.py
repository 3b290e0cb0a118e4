"""Recognise values that lead to a person, a device, an account or a point on the map, whatever their column is called.

Shapes are checked further where the numbering allows it: payment cards by the digit of Luhn (ISO/IEC 7812-1), bank
accounts by their remainder modulo 97 (ISO 13616), national numbers by their own check digits. A number without any
separator counts only where nearly all values of the column pass the same check, which chance does not produce.

``recognised`` serves guesses about a table and the judgement of a released one: it needs only the different texts of a
column. A result never contains a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from shoal.hierarchies.formats import DATE, sample
from shoal.inspection import vocabulary
from shoal.inspection.hierarchy_proposal import words

LOOKED_AT = 20_000  # different texts of a column; of more, so many are looked at, evenly drawn
MOSTLY = 0.5  # share of the texts that must be identifiers for a column that consists of them
BY_CHECK_DIGIT = 0.8  # share of the texts that must pass where only a check digit speaks for the kind
CHANCES = 10  # different texts that must pass: one in ten does by chance, all of them never


@dataclass(frozen=True)
class Recognised:
    """What the values of a column are, and in how many of its different texts they occur."""

    kind: str  # a plural, such as "e-mail addresses"
    texts: int
    inside: bool = False  # within longer texts, such as remarks
    place: bool = False  # they lead to a place, and only with it to persons

    @property
    def sentence(self) -> str:
        """What was recognised, as a reason for a role."""
        return f"some texts contain {self.kind}" if self.inside else f"the values look like {self.kind}"


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def passes_luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others by the formula of Luhn."""
    total = 0
    for i, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + i % 2)
        total += doubled - 9 * (doubled > 9)
    return total % 10 == 0


def passes_mod_97(text: str) -> bool:
    """Return whether a text is a bank account number: the rest by 97 is 1 after its first four characters go last."""
    plain = text.replace(" ", "").upper()
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def passes_verhoeff(digits: str) -> bool:
    """Return whether the last digit is the check digit of J. Verhoeff, "Error detecting decimal codes", 1969."""
    rest = 0
    for i, digit in enumerate(reversed(digits)):
        rest = _dihedral(rest, _permuted(int(digit), i % 8))
    return rest == 0


def _dihedral(a: int, b: int) -> int:
    """Multiply two elements of the symmetries of a pentagon: 0 to 4 are turns, 5 to 9 reflections."""
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5


def _permuted(digit: int, times: int) -> int:
    for _ in range(times):
        digit = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[digit]
    return digit


def _weighted(weights: Sequence[int], modulus: int) -> Callable[[str], bool]:
    """Return the check that the weighted sum of the digits, the last one included, is a multiple of the modulus."""
    return lambda digits: sum(w * int(digit) for w, digit in zip(weights, digits, strict=True)) % modulus == 0


def _spanish(text: str) -> bool:
    plain = text.upper().replace("-", "")
    number = str("XYZ".find(plain[0])) + plain[1:-1] if plain[0] in "XYZ" else plain[:-1]
    return plain[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def _french(digits: str) -> bool:
    return 97 - int(digits[:13]) % 97 == int(digits[13:])


def _swedish(digits: str) -> bool:
    return passes_luhn(digits[-10:])


def _chinese(text: str) -> bool:
    rest = sum(int(digit) * pow(2, 17 - i, 11) for i, digit in enumerate(text[:17])) % 11
    return text[17].upper() == "10X98765432"[rest]


def _internet_address(text: str) -> bool:
    return ":" in text or all(int(part) < 256 for part in re.split(r"[.:]", text)[:4])


def _telephone(text: str) -> bool:
    """Return whether digits with separators may be a telephone number: neither a date nor too short."""
    digits = sum(map(str.isdigit, text))
    return 7 <= digits <= 15 and not DATE.fullmatch(text) and not _DATE_IN_TEXT.fullmatch(text)


_DATE_IN_TEXT = re.compile(r"(?:\d{4}[ ./-]\d{1,2}[ ./-]\d{1,2}|\d{1,2}[ ./-]\d{1,2}[ ./-](?:\d{4}|\d{2}))")


# ── kinds of values ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _ValueKind:
    """One kind of value: what it looks like, what else must hold, and whether it is unmistakable within a text."""

    name: str
    shape: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    embedded: re.Pattern[str] | None = None

    def matches(self, text: str) -> bool:
        return bool(self.shape.fullmatch(text)) and (self.check is None or self.check(text))

    def is_in(self, text: str) -> bool:
        if self.embedded is None:
            return False
        return any(self.check is None or self.check(match.group()) for match in self.embedded.finditer(text))


def _kind(
    name: str, shape: str, check: Callable[[str], bool] | None = None, *, embedded: str | None = None
) -> _ValueKind:
    return _ValueKind(name, re.compile(shape, re.I), check, None if embedded is None else re.compile(embedded, re.I))


_MAIL = r"[^@\s,;<>()]+@[^@\s,;<>()]+\.[^@\s.,;<>()]+"
_WEB = r"(?:https?|ftp)://\S+|www\.\S+\.\S+"
_NUMBERS_IN_FOUR = r"(?:\d{1,3}\.){3}\d{1,3}"
_IBAN = r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"
_CARD = r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{5}"
_DEVICE = r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PHONE = (
    r"\+\d[\d ()/.-]{6,18}\d|00[1-9][\d ()/.-]{7,18}\d|\(\d{2,5}\) ?\d[\d -]{4,12}"
    r"|0\d{1,4}[ /-]\d[\d -]{4,10}|(?:1[-. ])?\d{3}[-.]\d{3}[-.]\d{4}|\d{3} \d{3} \d{4}"
)
_AROUND = r"(?<![\w.+-]){}(?![\w-])"
_NATIONAL_IN_TEXT = (
    r"(?<![\w-])(?:(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}|756\.\d{4}\.\d{4}\.\d{2}"
    r"|\d{3}\.\d{3}\.\d{3}-\d{2}|[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z])(?![\w-])"
)

KINDS = (
    _kind("e-mail addresses", _MAIL, embedded=_MAIL),
    _kind("web addresses", _WEB, embedded=r"(?:https?|ftp)://\S+|(?<!\w)www\.\S+\.\S+"),
    _kind("handles", r"@[A-Z0-9_][A-Z0-9_.-]{1,38}", embedded=r"(?<![\w@./])@[A-Z][A-Z0-9_]{2,38}\b"),
    _kind(
        "device addresses",
        rf"{_DEVICE}|(?:[0-9a-f]{{4}}\.){{2}}[0-9a-f]{{4}}",
        embedded=r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b",
    ),
    _kind(
        "IP addresses",
        rf"{_NUMBERS_IN_FOUR}(?::\d+)?|[0-9a-f]{{0,4}}(?::[0-9a-f]{{0,4}}){{3,7}}",
        _internet_address,
        embedded=rf"(?<![\w.]){_NUMBERS_IN_FOUR}(?![\w.]\d)",
    ),
    _kind("universal identifiers", rf"\{{?{_UUID}\}}?", embedded=rf"\b{_UUID}\b"),
    _kind("bank account numbers", _IBAN, passes_mod_97, embedded=rf"\b{_IBAN}\b"),
    _kind("payment card numbers", _CARD, embedded=rf"(?<![\w-])(?:{_CARD})(?![\w-])"),
    # Without separators a number must pass the check, and is looked for only in longer texts.
    _kind("payment card numbers", r"(?!)", passes_luhn, embedded=r"(?<![\w.-])(?:[3-6]\d{15}|3[47]\d{13})(?![\w.-])"),
    _kind(
        "national identity numbers",
        r"(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}"  # United States
        r"|[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]"  # Italy
        r"|[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?\d[\dAB] ?\d{3} ?\d{3}(?: ?\d{2})?"  # France
        r"|[A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]"  # United Kingdom
        r"|\d{3}\.\d{3}\.\d{3}-\d{2}"  # Brazil
        r"|756\.\d{4}\.\d{4}\.\d{2}"  # Switzerland
        r"|\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}"  # Belgium
        r"|\d{2} ?(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d{2} ?[A-Z] ?\d{3}"  # Germany, of the pension insurance
        r"|[A-Z]{3}[ABCFGHLJPTK][A-Z]\d{4}[A-Z]"  # India, of the tax office
        r"|(?:\d{2})?\d{6}[-+A]\d{3}[\dA-Z]",  # Denmark, Finland, Sweden
        embedded=_NATIONAL_IN_TEXT,
    ),
    _kind("national identity numbers", r"[XYZ\d]\d{7}-?[A-HJ-NP-TV-Z]", _spanish),
    _kind("national identity numbers", r"\d{17}[\dX]", _chinese),
    _kind("phone numbers", _PHONE, _telephone, embedded=_AROUND.format(f"(?:{_PHONE})")),
    _kind(
        "coordinates",
        r"[(\[]?-?\d{1,3}\.\d{3,}[,; ] ?-?\d{1,3}\.\d{3,}[)\]]?|POINT ?\(-?\d+\.\d+ -?\d+\.\d+\)"
        r"|\d{1,3}°.{0,20}[NS].{0,3}\d{1,3}°.{0,20}[EWO]",
        embedded=r"(?<![\d.])-?\d{1,2}\.\d{4,}[,;] ?-?\d{1,3}\.\d{4,}(?![\d.])",
    ),
)

# Numbers of a fixed length that are told by their check digit alone.
_CHECK_DIGITS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("payment card numbers", re.compile(r"(?:[2-6]\d|1800|2131)\d{11,17}"), passes_luhn),
    ("national identity numbers", re.compile(r"[12]\d{2}(?:0[1-9]|1[0-2])\d{10}"), _french),
    ("national identity numbers", re.compile(r"\d{12}"), passes_verhoeff),  # India
    ("national identity numbers", re.compile(r"\d{11}"), _weighted((11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)),  # Brazil
    ("national identity numbers", re.compile(r"\d{11}"), _weighted((1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)),  # Poland
    ("national identity numbers", re.compile(r"\d{11}"), _weighted((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), 11)),  # Norway
    ("national identity numbers", re.compile(r"756\d{10}"), _weighted((1, 3) * 6 + (1,), 10)),  # Switzerland
    ("national identity numbers", re.compile(r"\d{10}"), _weighted((10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)),  # NHS
    ("national identity numbers", re.compile(r"(?:19|20)?\d{2}[01]\d[0-3]\d{5}"), _swedish),
    ("national identity numbers", re.compile(r"\d{9}"), _weighted((9, 8, 7, 6, 5, 4, 3, 2, -1), 11)),  # Netherlands
    ("national identity numbers", re.compile(r"\d{9}"), _weighted((9, 8, 7, 6, 5, 4, 3, 2, 1), 11)),  # Portugal
    ("national identity numbers", re.compile(r"\d{9}"), passes_luhn),  # Canada
)

# Census tracts, block groups and blocks of the United States: state, county, tract. Counties have odd numbers.
_TRACT = re.compile(r"(?:0?[1-9]|[1-4]\d|5[0-6]|60|66|69|72|78)\d{2}[13579]\d{6}(?:\d|\d{4})?")


def recognised(texts: Sequence[str]) -> Recognised | None:
    """Return what the different texts of a column are or contain, if that leads to persons or places; None if nothing.

    Of a column that consists of such values, most texts match; kinds may be mixed. In longer texts one match is enough.
    """
    looked_at = [text.strip()[:2000] for text in sample(texts, LOOKED_AT) if text.strip()]
    if not looked_at:
        return None
    return _consists_of(looked_at) or _by_check_digit(looked_at) or _contains(looked_at)


def _consists_of(texts: Sequence[str]) -> Recognised | None:
    if all(map(DATE.fullmatch, texts)):
        return None
    first = texts[:: max(1, len(texts) // 200)]  # rules out most kinds before every text is read
    possible = [kind for kind in KINDS if any(map(kind.matches, first))]
    matches: dict[str, int] = {}
    for text in texts:
        if kind := next((kind for kind in possible if kind.matches(text)), None):
            matches[kind.name] = matches.get(kind.name, 0) + 1
    if sum(matches.values()) < MOSTLY * len(texts):
        return None
    most_frequent = max(matches, key=matches.__getitem__)
    return Recognised(most_frequent, matches[most_frequent])


def _by_check_digit(texts: Sequence[str]) -> Recognised | None:
    # A reader may have taken long numbers for floats.
    plain = [text.removesuffix(".0") for text in texts]
    if len(plain) < CHANCES or not all(map(str.isdigit, plain)) or not all(map(str.isascii, plain)):
        return None
    if (tracts := _n_matching(_TRACT, plain)) == len(plain) and _spreads_over_counties(plain):
        return Recognised("census tracts", tracts, place=True)
    first = sample(plain, 50)
    for name, shape, check in _CHECK_DIGITS:
        if not any(map(shape.fullmatch, first)):
            continue
        passing = sum(1 for text in plain if shape.fullmatch(text) and check(text))
        if passing >= max(CHANCES, BY_CHECK_DIGIT * len(plain)):
            return Recognised(name, passing)
    return None


def _spreads_over_counties(texts: Sequence[str]) -> bool:
    """Return whether numbers are more than consecutive ones that happen to begin as a county does."""
    numbers = sorted(int(text) for text in texts)
    return any(b - a > 1 for a, b in pairwise(numbers))


def _contains(texts: Sequence[str]) -> Recognised | None:
    """Look for identifiers within texts of several words, and for single ones among other values."""
    longer = [text for text in texts if _may_contain(text)]
    n_texts: dict[str, int] = {}
    for text in longer:
        if not any(char.isdigit() or char in "@/" for char in text):
            continue
        if kind := next((kind for kind in KINDS if kind.is_in(text)), None):
            n_texts[kind.name] = n_texts.get(kind.name, 0) + 1
    if not n_texts:
        return None
    most_frequent = max(n_texts, key=n_texts.__getitem__)
    return Recognised(most_frequent, n_texts[most_frequent], inside=True)


def _may_contain(text: str) -> bool:
    """Return whether a text may be more than a number or a date: several words, or a single identifier among others."""
    if text.startswith("+"):
        return sum(map(str.isdigit, text)) > 8  # a phone number among other values
    return any(map(str.isalpha, text)) and any(mark in text for mark in " @/:-")


def _n_matching(shape: re.Pattern[str], texts: Iterable[str]) -> int:
    return sum(1 for text in texts if shape.fullmatch(text))


# ── pairs of columns ────────────────────────────────────────────────────────────────────────────────────────

_DEGREES = re.compile(r"-?\d{1,3}(?:\.(\d+))?")
_PRECISE = 4  # decimals of a degree, about ten metres
_COMPUTED = 9  # so many decimals come from a computation, not from a map


def coordinate_pairs(columns: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of columns that together are points on the map; ``columns`` are the different texts of each.

    By name, such as ``lon`` and ``lat`` or ``x_coord`` and ``y_coord``; and under any name where two columns of numbers
    are degrees with the same four to eight decimals that stay within one region.
    """
    numbers = {name: texts for name, texts in columns.items() if _has_fractions(texts)}
    named = [name for name in numbers if names_a_coordinate(name)]
    degrees = {
        name: 0 if _speaks_of_something_else(name) else _decimals_of_degrees(texts) for name, texts in numbers.items()
    }
    pairs = [
        (a, b)
        for a, b in combinations(numbers, 2)
        if (a in named and b in named)
        or (degrees[a] and degrees[a] == degrees[b] and _in_one_region(numbers[a], numbers[b]))
    ]
    return tuple(pairs)


def names_a_coordinate(name: str) -> bool:
    """Return whether a column is called as coordinates are."""
    return any(map(vocabulary.COORDINATES.fullmatch, words(name)))


def _speaks_of_something_else(name: str) -> bool:
    """Return whether the name says what the numbers are: body weights and lengths of years may look like degrees."""
    word_lists = [word_list for word_list in vocabulary.ALL if word_list not in (vocabulary.PLACES, vocabulary.KEYED)]
    return any(word_list.fullmatch(word) for word_list in word_lists for word in words(name))


def _has_fractions(texts: Sequence[str]) -> bool:
    sampled = sample(texts, 200)
    fractions = sum(1 for text in sampled if re.fullmatch(r"-?\d+\.\d{2,}", text))
    return bool(sampled) and 2 * fractions >= len(sampled)


def _decimals_of_degrees(texts: Sequence[str]) -> int:
    """Return the number of decimals of a column of degrees, or 0: coordinates of one map have the same everywhere."""
    if len(texts) < CHANCES:
        return 0
    matches = [_DEGREES.fullmatch(text) for text in sample(texts)]
    decimals = [len(match.group(1) or "") for match in matches if match]
    if len(decimals) < len(matches) or not _PRECISE <= max(decimals) < _COMPUTED:
        return 0
    # A last zero is not written, which happens to one number in ten.
    return max(decimals) if sum(n >= max(decimals) - 1 for n in decimals) >= 0.9 * len(decimals) else 0


def _in_one_region(first_texts: Sequence[str], second_texts: Sequence[str]) -> bool:
    """Return whether two columns of numbers are a latitude and a longitude within one part of the world."""
    a, b = (np.array(sample(texts), dtype=np.float64) for texts in (first_texts, second_texts))
    latitude, longitude = (a, b) if np.abs(a).max() <= np.abs(b).max() else (b, a)
    if np.abs(latitude).max() > 90 or np.abs(longitude).max() > 180:
        return False
    away_from_zero = any(abs(np.median(numbers)) > 2 * np.std(numbers) for numbers in (latitude, longitude))
    regional = max(np.ptp(latitude), np.ptp(longitude)) < 60
    return bool(away_from_zero and regional and abs(np.median(longitude)) > 2)
