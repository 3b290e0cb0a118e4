"""Propose a generalization hierarchy for a column from its name and values alone.

Numbers get intervals of round widths, dates get calendar periods, times of day get parts of the day; codes of known
classifications get their groups, other codes lose characters from the right; words on a scale keep their order;
everything else is kept, joined into sets, or hidden. Nearly all values must show what a column is; one is never enough.
A column with many different numbers starts at bins of about a 64th of its range, so that no released range ends at an
individual's value, and at finer ones if most people are near zero. A proposal always covers the values it was made
from; a hierarchy by someone who knows the column may lose less.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.builders import Flat, Mask
from shoal.hierarchies.codes import CLASSIFICATIONS, Classification, ClassificationCodes
from shoal.hierarchies.dates import UNITS, Dates, Unit
from shoal.hierarchies.formats import NUMBER, date_formats, read_days, sample
from shoal.hierarchies.intervals import Intervals, round_numbers
from shoal.hierarchies.scales import SCALES, Ordered, folded, may_hold, places
from shoal.hierarchies.times import UNITS as TIME_UNITS
from shoal.hierarchies.times import Times, TimeUnit, read_time
from shoal.tables.frequency import Counts

ProposedSpec = Intervals | Mask | Dates | Times | ClassificationCodes | Ordered | Flat
Confidence = Literal["sure", "likely"]

FEW = 12  # up to this many distinct values, a number may be a code for a category
BINS = 64  # of the range of a column: finer boundaries lose as much, and end at individual values
EXACT = 100  # up to this many different whole numbers, such as ages, are their own bins
NEARLY_ALL = 0.95  # share of the values and of the records that must match a type
SETS = 200  # up to this many codes, classes show sets of them: labels of codes may give values back, windows do not
FINER = 1000  # at most this many times smaller than the first width is the smallest interval of a skewed column


@dataclass(frozen=True)
class Proposal:
    """A hierarchy, the finest released level, and the notation of cells between two levels."""

    hierarchy: ProposedSpec
    cells: Literal["hierarchy", "range", "set"] = "hierarchy"
    min_level: int = 0
    kind: str = ""  # the recognized type of the values, if it is more than numbers, dates or texts
    sure: Confidence = "sure"

    @property
    def told(self) -> str:
        """Describe the recognized type of the values for people; empty if there is nothing to say."""
        doubt = "" if self.sure == "sure" else ", judging by the values only"
        return f"{self.kind}{doubt}" if self.kind else ""

    def fields(self) -> dict[str, Any]:
        """Return the fields that a policy would contain."""
        fields: dict[str, Any] = {"hierarchy": self.hierarchy.model_dump(mode="json", exclude_defaults=True)}
        if self.min_level:
            fields["min_level"] = self.min_level
        return fields if self.cells == "hierarchy" else fields | {"cells": self.cells}

    def for_one_cut(self) -> Proposal:
        """Return the proposal for a search that cuts each column once: more widths, and labels of the hierarchy."""
        spec = self.hierarchy
        if isinstance(spec, Intervals) and spec.intervals:
            spec = spec.model_copy(update={"intervals": tuple(_doubled(spec.intervals))})
        return replace(self, hierarchy=spec, cells="hierarchy")


def _doubled(widths: Sequence[Decimal]) -> Iterator[Decimal]:
    """Return the first width, its round multiple, and doubles of that up to twice the last width: 1, 5, 10, 20, 40 …"""
    width = widths[0]
    while width <= 2 * widths[-1]:
        yield width
        width *= 5 if str(width.normalize()).lstrip("0.").startswith("1") and width == widths[0] else 2


HIDDEN_OR_SETS = Proposal(Flat(), "set")


AGES = tuple(map(Decimal, (5, 10, 20, 40)))  # commonly used groups

CODE = re.compile(r"[0-9A-Z]{2,16}")
CODE_WORDS = re.compile("zip|zipcode|postal|postalcode|postcode|plz|cap|cp|cep|code|id|key|icd")
MEASURE_WORDS = re.compile(
    "incomes?|salary|wages?|costs?|prices?|amount|total|value|weight|balance|debt|tax|gehalt|einkommen|lohn|kosten"
    "|betrag|preis|salaire|revenu|cout|reddito|costo|stipendio|salario|ingresos?|renda|pay|gain|loss|distance"
)

AGE_WORDS = re.compile("age|ages|alter|eta|edad|idade|leeftijd")

MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
PERIODS: tuple[Unit, ...] = ("day", "month", "quarter", "year", "decade")
PIVOT = 31  # with two digits: a birth in 1931 is likelier than any date in 2031


def propose(column: str, values: Sequence[str], counts: Counts) -> Proposal:
    """Propose a hierarchy for the distinct ``values`` of ``column``, value ``i`` occurring ``counts[i]`` times."""
    if len(values) <= 2:
        return HIDDEN_OR_SETS
    forms = date_formats(values)
    if forms:
        return _dates(values, forms[0]) if len(forms) == 1 else HIDDEN_OR_SETS
    if all(map(MONTH.fullmatch, values)):
        return _dates(values, "%Y-%m")
    if all(read_time(value) is not None for value in values):
        return _times(values)
    if codes := _classified(column, values, counts):
        return codes
    if len(values) > FEW and is_code(column, values):
        return Proposal(Mask(mask="right"), _cells_of_codes(values))
    if is_postcode(column, values):
        return Proposal(Mask(mask="right"), _cells_of_codes(values), kind="postcodes")
    if all(map(NUMBER.fullmatch, values)):
        return _intervals(column, np.array(values, dtype=np.float64), counts)
    return _ordered(column, values) or HIDDEN_OR_SETS


# ── what the values are ─────────────────────────────────────────────────────────────────────────────────────


def _classified(column: str, values: Sequence[str], counts: Counts) -> Proposal | None:
    """Recognize codes of a classification if nearly all match, and their look or the column's name shows which one."""
    names = words(column)
    named = [kind for kind, (word, _) in CODE_SHAPES.items() if any(map(word.fullmatch, names))]
    for kind in (*named, *(kind for kind in CODE_SHAPES if kind not in named)):
        by_name, shape = kind in named, CODE_SHAPES[kind][1]
        if not by_name and (shape is None or len(values) <= FEW):
            continue
        path = CLASSIFICATIONS[kind].path
        fits = np.fromiter((path(value) is not None for value in values), np.bool_, len(values))
        if fits.mean() < NEARLY_ALL or (counts * fits).sum() < NEARLY_ALL * counts.sum():
            continue
        look = NAMED_LOOK.get(kind) if by_name else shape
        if look is not None and sum(map(bool, map(look.fullmatch, values))) < NEARLY_ALL * len(values):
            continue
        groups = {path(value) for value, fit in zip(values, fits, strict=True) if fit}
        if len({group[-1] for group in groups if group}) < 2:  # one chapter or one region: nothing to choose from
            continue
        return Proposal(
            ClassificationCodes(codes=kind),
            _cells_of_codes(values),
            kind=f"{CODE_NAMES[kind]} codes",
            sure="sure" if by_name else "likely",
        )
    return None


def _cells_of_codes(values: Sequence[str]) -> Literal["set", "hierarchy"]:
    """Windows of codes, unless their texts would be too long; codes that share a prefix or group lie side by side."""
    return "set" if len(values) <= SETS else "hierarchy"


# The telling words of a name, and the look of codes that is sufficient, or None if only the name is.
CODE_SHAPES: dict[Classification, tuple[re.Pattern[str], re.Pattern[str] | None]] = {
    "nace": (
        re.compile("nace|noga|naf|ape|ateco|cnae|cae|wz|industry|branch|branche|sector|secteur|settore|ramo"
                   "|wirtschaftszweig|activity"),
        re.compile(r"[A-V][0-9]{2}\.[0-9]{1,2}"),
    ),
    "icd-10": (
        re.compile("icd|diag|diagnosis|diagnoses|diagnose|diagnosen|dx|dgns|diagnostic|diagnosi|diagnostico|diagnosticos"
                   "|cause|todesursache|disease|maladie|malattia|enfermedad|doenca"),
        re.compile(r"[A-Z][0-9][0-9A-Z](\.[0-9A-Z-]{1,4})"),
    ),
    "isco-08": (re.compile("isco|occupation|occ|beruf|berufe|profession|metier|professione|profesion|profissao"
                           "|ocupacion|ocupacao|occupazione"), None),
    "country": (
        re.compile("country|countries|nation|nationality|citizenship|citizen|iso|cntry|origin|birthplace|land|staat"
                   "|herkunft|herkunftsland|geburtsland|staatsangehorigkeit|nationalitat|pays|nationalite|paese|nazione"
                   "|nazionalita|cittadinanza|pais|nacionalidad|nacionalidade|cidadania|ciudadania"),
        re.compile("[A-Z]{3}"),
    ),
}  # fmt: skip
# What a column called a branch or an occupation needs: 62 alone may be a code of another classification.
NAMED_LOOK: dict[Classification, re.Pattern[str]] = {
    "nace": re.compile(r"[A-V][0-9]{2}(\.[0-9]{1,2})?|[0-9]{2}\.[0-9]{1,2}"),
    "isco-08": re.compile(r"[0-9]{3,4}"),
}
CODE_NAMES: dict[Classification, str] = {
    "icd-10": "ICD-10", "isco-08": "ISCO-08", "nace": "NACE", "country": "country"
}  # fmt: skip

POSTAL_WORDS = re.compile("zip|zipcode|postal|postalcode|postcode|postleitzahl|plz|cap|cp|cep")
POSTCODES = (
    re.compile(r"[0-9]{5}-[0-9]{4}"),  # United States
    re.compile(r"[A-Z]{1,2}[0-9][0-9A-Z]? [0-9][A-Z]{2}"),  # United Kingdom: after the space, a fixed length
    re.compile(r"[A-Z][0-9][A-Z][ -]?[0-9][A-Z][0-9]"),  # Canada
    re.compile(r"[0-9]{4} ?[A-Z]{2}"),  # Netherlands
    re.compile(r"[0-9]{2}-[0-9]{3}"),  # Poland
    re.compile(r"[0-9]{4}-[0-9]{3}"),  # Portugal
    re.compile(r"[0-9]{5}-[0-9]{3}"),  # Brazil
    re.compile(r"[0-9]{3} [0-9]{2}"),  # Sweden, Czechia, Greece
)


def is_postcode(column: str, values: Sequence[str]) -> bool:
    """Recognize postcodes of one country, if they contain a blank or a dash or are few: then the name decides."""
    if not any(map(POSTAL_WORDS.fullmatch, words(column))):
        return False
    return any(all(map(form.fullmatch, values)) for form in POSTCODES) or (
        len(values[0]) >= 4 and is_code(column, values)
    )


# Numbers that express an order: 9th, II, grade 5, Klasse 7, stage IIIb. The number of a town or a room does not.
STEPS = re.compile(
    r"(?:(?:grade|class|year|level|stage|phase|step|degree|rank|tier|group|quartile|quintile|decile|form|klasse|stufe"
    r"|stadium|niveau|rang|schuljahr|jahr|classe|annee|stade|etape|grado|anno|livello|stadio|fase|nivel|estadio|etapa|ano"
    r"|curso|serie)\s*)?(?:[0-9]{1,2}|[ivx]+)(?:st|nd|rd|th|er|e|eme|o|a)?"
    r"(?:\s*(?:grade|class|year|level|klasse|stufe|schuljahr|jahr|classe|annee|anno|grado|ano|curso|serie))?"
)


BARE = re.compile("[A-F]|[IVXivx]+")
STEP_WORDS = re.compile(
    "grade|grades|mark|marks|note|noten|score|rating|class|level|stage|phase|rank|degree|klasse|stufe|stadium|niveau|rang"
    "|classe|stade|voto|livello|stadio|nota|nivel|estadio|conceito|calificacion"
)


def _ordered(column: str, values: Sequence[str]) -> Proposal | None:
    """Recognize words on one scale, or texts ordered by one number; all values must match."""
    named = any(map(STEP_WORDS.fullmatch, words(column)))
    sampled = sample(values)  # rules out most scales before every value is read
    for scale in SCALES:
        if not may_hold(scale, sampled):
            continue
        place_of = places(scale, values)
        if scale == "numbered" and not all(STEPS.fullmatch(folded(value)) for value in values):
            continue
        # A, B, C and I, II, III may be batches or studies: the name, or a plus, must show that they are an order.
        bare = all(BARE.fullmatch(value.strip()) for value in values)
        if scale in ("marks", "numbered") and bare and not named:
            continue
        if len(place_of) == len(values) and len({scale_place.rank for scale_place in place_of.values()}) > 2:
            return Proposal(Ordered.model_validate({"ordered": scale}), "range", kind=f"a scale ({scale})")
    return None


def is_code(column: str, values: Sequence[str]) -> bool:
    """Recognize codes: digits, or digits among capitals, of one length, such as postcodes, diagnosis codes and keys."""
    if len({len(value) for value in values}) != 1 or not all(map(CODE.fullmatch, values)):
        return False
    if any(value.isalpha() for value in values):
        return False
    if not all(value.isdigit() for value in values) or any(value[0] == "0" for value in values):
        return True
    # Whole numbers may look the same. The name decides; without it the length does, because few measures
    # have five digits or more in every record.
    names = words(column)
    if any(map(CODE_WORDS.fullmatch, names)):
        return True
    return len(values[0]) >= 5 and not any(map(MEASURE_WORDS.fullmatch, names))


def words(column: str) -> frozenset[str]:
    """Split a column name into words, in lower case without accents: ``birthDate_Année`` is birth, date, annee."""
    plain = unicodedata.normalize("NFKD", column).replace("ß", "ss")
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    parted = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])|[\W\d_]+", " ", plain)
    return frozenset(parted.lower().split())


def _dates(values: Sequence[str], form: str) -> Proposal:
    """Choose the periods that merge some but not all dates; days are shown only if there are few of them."""
    days = read_days(form, values)
    periods: list[Unit] = []
    finer = len(values)
    for period in PERIODS:
        distinct = len(set(map(UNITS[period], days)))
        if 1 < distinct < finer and not (form == "%Y-%m" and period in ("day", "month")):
            periods.append(period)
            finer = distinct
    if not periods:
        return HIDDEN_OR_SETS
    spec = Dates(dates=tuple(periods), format=form, pivot=PIVOT if "%y" in form else 69)
    return Proposal(spec, "range", 1 if len(values) > EXACT else 0)


def _times(values: Sequence[str]) -> Proposal:
    """Choose the parts of the day that merge some but not all times; times are shown only if there are few of them."""
    minutes = np.array([read_time(value) for value in values], np.float64) // 60
    units: list[TimeUnit] = []
    finer = len(values)
    for unit, width in TIME_UNITS.items():
        distinct = len(np.unique(minutes // width))
        if 1 < distinct < finer:
            units.append(unit)
            finer = distinct
    if not units:
        return HIDDEN_OR_SETS
    return Proposal(Times(times=tuple(units)), "range", 1 if len(values) > EXACT else 0, kind="times of the day")


def _intervals(column: str, numbers: NDArray[np.float64], counts: Counts) -> Proposal:
    """Choose round widths that merge some but not all numbers, from a 64th of the range up to half of it.

    The range is that of the middle 98 % of the records: a few huge values would put the rest in one interval.
    """
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(counts[order])
    first, last = np.searchsorted(below, [below[-1] * 0.01, below[-1] * 0.99])
    span = float(numbers[order[last]] - numbers[order[first]]) or float(np.ptp(numbers))
    if not span:
        return HIDDEN_OR_SETS
    whole = bool((numbers == np.floor(numbers)).all())
    exact = len(numbers) <= FEW or (whole and len(numbers) <= EXACT)
    # Decimal, because 0.1 · 5 must be a whole multiple of 0.1.
    least_width = Decimal(repr(span)) / BINS
    ladder = (
        AGES if whole and exact and any(map(AGE_WORDS.fullmatch, words(column))) else _widths(least_width, span, whole)
    )
    widths: list[Decimal] = []
    finer = len(numbers)
    for width in ladder:
        distinct = len(np.unique(np.floor(numbers / float(width))))
        if 1 < distinct < finer:
            widths.append(width)
            finer = distinct
    if not widths:
        return HIDDEN_OR_SETS if not exact else Proposal(Intervals(intervals=(_above(span),)), "range")
    log_from = None if exact else _skewed(numbers, counts, widths[0], whole)
    kind = "skewed numbers, with finer steps near zero" if log_from is not None else ""
    return Proposal(Intervals(intervals=tuple(widths), log_from=log_from), "range", 0 if exact else 1, kind=kind)


def _skewed(numbers: NDArray[np.float64], counts: Counts, width: Decimal, whole: bool) -> Decimal | None:
    """Return where steps of 1, 2, 5, 10 … begin, if half of the records above 0 lie below the first width."""
    positive = numbers > 0
    near = positive & (numbers < float(width))
    if 2 * counts[near].sum() <= counts[positive].sum() or (numbers < 0).any() or near.sum() < 3:
        return None
    order = np.argsort(numbers[near], kind="stable")
    below = np.cumsum(counts[near][order])
    low = numbers[near][order][np.searchsorted(below, below[-1] * 0.1)]
    smallest = max(Decimal(repr(float(low))), width / FINER, Decimal(int(whole)))
    steps = round_numbers(smallest, width)
    return steps[0] if steps else None


def _widths(least_width: Decimal, span: float, whole: bool) -> Iterator[Decimal]:
    """Return nested round widths: 1, 2, 10, 20, 100 … or 5, 10, 50, 100 …, the first at least ``least``."""
    power = max(least_width.adjusted(), 0) if whole else least_width.adjusted()
    width = next(w for w in (Decimal(d).scaleb(power + up) for up in (0, 1) for d in (1, 2, 5)) if w >= least_width)
    while float(width) <= span / 2:
        yield width
        width *= 5 if str(width.normalize()).lstrip("0.").startswith("2") else 2


def _above(span: float) -> Decimal:
    """Return a round width that holds the whole range, for columns with few numbers."""
    return Decimal(10).scaleb(Decimal(repr(span)).adjusted())
