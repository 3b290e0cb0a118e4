"""Guess the role of a column from its name, the shape of its values and their numbers.

Guessed on the safe side: what is not clearly harmless is taken for something that an outsider may know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.table.propose import FEW, NUMBER, date_formats, is_code, sample, words

Kind = Literal["number", "date", "code", "text", "category"]
Role = Literal["identifier", "quasi", "sensitive", "plain"]

CROWD = 5  # records among which nobody stands out
ENOUGH = 20  # below so many records, unique values say nothing about a column
PERSON_KEY = "a key of persons, by its name"
LONG = 40  # characters on average: nobody abbreviates a category like that

# Values that lead to a person, a device or an account wherever they stand.
SHAPES = {
    "e-mail addresses": r"[^@\s]+@[^@\s]+\.[^@\s.]+",
    "web addresses": r"(?:https?|ftp)://\S+|www\.\S+\.\S+",
    "IP addresses": r"(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}",
    "device addresses": r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}",
    "universal identifiers": r"\{?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?",
    "bank account numbers": r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?",
    "payment card numbers": r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}",
    "national identity numbers": (
        r"\d{3}-\d{2}-\d{4}"  # United States
        r"|[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]"  # Italy
        r"|[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?\d[\dAB] ?\d{3} ?\d{3}(?: ?\d{2})?"  # France
        r"|[A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]"  # United Kingdom
        r"|[XYZ\d]\d{7}-?[A-HJ-NP-TV-Z]"  # Spain
        r"|\d{3}\.\d{3}\.\d{3}-\d{2}"  # Brazil
        r"|(?:\d{2})?\d{6}[-+A]\d{3}[\dA-Z]"  # Finland, Sweden
    ),
    "phone numbers": (
        r"\+\d[\d ()/.-]{6,18}\d|\(\d{2,5}\) ?\d[\d -]{4,12}"
        r"|0\d{1,4}[ /-]\d[\d -]{4,10}|\d{3}[-.]\d{3}[-.]\d{4}"
    ),
    "coordinates": r"-?\d{1,2}\.\d{3,}[,;] ?-?\d{1,3}\.\d{3,}",
}
SAVED_INDEX = re.compile(r"Unnamed: [0-9]+|__index_level_[0-9]+__")  # as pandas names one
PERSON = re.compile(r"[^\W\d_]+(?:['’. ,-]+[^\W\d_]+)*\.?")
FIGURE = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def _vocabulary(text: str) -> re.Pattern[str]:
    """Words, and parts of words where a hyphen stands for the rest; small letters, no accents."""
    return re.compile("|".join(word.replace("-", r"\w*") for word in text.split()))


# Words in the names of columns: English, German, French, Italian, Spanish, Portuguese, Dutch.
NAMED = _vocabulary("""
    name names -name surname- forename- maiden nom prenom- cognome nome nombre apellido- sobrenome naam
    -naam
""")
REACHED = _vocabulary("""
    email mail phone- telephone- telefo- tel mobile cell handy fax ssn passport- passeport passnummer
    iban account- konto username login user address- adress- indirizzo direccion endereco adres street
    strasse rue calle url ip mrn licen- plate kennzeichen codicefiscale nif dni nir bsn cpf
""")
KEYED = _vocabulary("""
    id ids pid hid hhid uid userid personid patientid subjectid recordid customerid clientid memberid
    key uuid guid nr no num number nummer numero index rowid rownum record identifier
""")
PEOPLE = _vocabulary("""
    patient- person- subject- customer- client- employee- student- member- user- participant-
    respondent- kunde- mitarbeiter- paziente- paciente- cliente-
""")
WHEN = _vocabulary("""
    age ages alter eta edad idade leeftijd date dates datum fecha day year jahr annee anno ano jaar dob
    birth- born geburt- geboren naissance nascita nacimiento nascimento geboorte-
""")
KNOWN = _vocabulary("""
    zip- postal- postcode postleitzahl plz cap cp cep city town stadt ville citta ciudad cidade municip-
    gemeinde comune commune county state region- provinc- district- country land pays paese pais nation-
    citizen- native immigra- origin- herkunft sex gender geschlecht sexe sesso sexo genere genero
    geslacht race ethn- etni- marit- married familienstand civil zivilstand stato estado education-
    educ- school bildung- job jobs occupation- profession- beruf- work- employ- language- sprache langue
    lingua idioma household- haushalt- children kids kinder height weight hair eye
""")
PRIVATE = _vocabulary("""
    diseas- diagnos- illness- condition- symptom- krank- maladie- malatti- enfermedad- doenca- ziekte-
    icd medic- drug- therap- terapi- treat- behandlung- hiv aids covid- disorder- disab- behinder-
    mental- depress- cancer- pregnan- schwanger- genetic- genom- blood- blut- bmi health- gesund- sante
    salute salud saude death- income- salar- wage wages earning- gehalt- einkommen- lohn- revenu-
    salaire- stipendio- reddit- ingreso- sueldo- renda- cost costs price- charge- kosten- preis- cout-
    costo costi coste custo- expen- amount- betrag- debt- loan- credit- kredit- score- balance- wealth-
    asset- gain loss tax taxes steuer- schuld- relig- glaube- konfession- church- polit- party partei
    vote votes voted union- gewerkschaft- crim- convict- offence- offense- arrest- sexual- orientation
    abuse- suicid- addict- alcohol- smok- grade- rating-
""")


def all_numbers(texts: Sequence[str]) -> bool:
    """Whether each is written as a number."""
    return all(map(NUMBER.fullmatch, texts))


@dataclass(frozen=True, eq=False)
class Seen:
    """A column as it came, with what the guesses need."""

    name: str
    texts: tuple[str, ...]
    counts: NDArray[np.int64]  # records with each text
    records: int
    distinct: int
    numbers_the_rows: bool
    all_there: bool = True  # the texts: or they are too many, and some stand for all

    @cached_property
    def filled(self) -> int:
        """Records with a value."""
        return int(self.counts.sum())

    @property
    def nulls(self) -> int:
        """Records without one."""
        return self.records - self.filled

    @cached_property
    def some(self) -> list[str]:
        """Some of the texts, none of them blank."""
        return [text.strip()[:200] for text in sample(self.texts) if text.strip()]

    @cached_property
    def kind(self) -> Kind:
        """What they seem to be."""
        some, distinct = self.some, self.distinct
        if not some or distinct <= 2:
            return "category"
        if date_formats(some):
            return "date"
        if distinct > FEW and is_code(self.name, some):
            return "code"
        if all(map(FIGURE.fullmatch, some)):
            return "number"
        return "category" if distinct <= FEW or 20 * distinct <= self.filled else "text"

    @property
    def few_share(self) -> bool:
        """A value occurs ten times on average, or less often."""
        return 10 * self.distinct >= self.filled

    @property
    def nearly_unique(self) -> bool:
        """Nine records of ten have a value of their own."""
        return self.filled >= ENOUGH and 10 * self.distinct >= 9 * self.filled

    @property
    def counts_up(self) -> bool:
        """Whole numbers, no two alike, that leave few gaps: given out one after the other."""
        if self.distinct != self.filled or not all_numbers(self.texts):
            return False
        numbers = np.array(self.texts, dtype=np.float64)
        return not self.all_there or bool((numbers == np.floor(numbers)).all() and np.ptp(numbers) < 2 * len(numbers))

    def named(self, vocabulary: re.Pattern[str]) -> bool:
        """Whether a word of its name is one of these."""
        return any(map(vocabulary.fullmatch, words(self.name)))


def roles_of(seen: Sequence[Seen]) -> list[tuple[Role, str]]:
    """The role of each column, and why."""
    roles = [_role(column) for column in seen]
    # A release without any quasi column promises nothing: take the next best for one.
    for spare in ("plain", "sensitive"):
        if "quasi" not in dict(roles):
            roles = [("quasi", "nothing else to link on") if role == spare else (role, why) for role, why in roles]
    return roles


def _role(column: Seen) -> tuple[Role, str]:
    return _identifier(column) or _sensitive(column) or _harmless(column) or _quasi(column)


def _identifier(column: Seen) -> tuple[Role, str] | None:
    if SAVED_INDEX.fullmatch(column.name):
        return "identifier", "a row index that was saved with the table"
    if not column.some:
        return None
    if column.kind != "date" and (shape := _shape(column.some)):
        return "identifier", f"the values look like {shape}"
    if column.named(REACHED) and column.few_share and not column.named(PRIVATE):
        return "identifier", "the name says that it leads straight to a person"
    if column.named(NAMED) and not column.named(KNOWN) and _share(PERSON, column.some) >= 0.8:
        return "identifier", "names of people, by its own name and the look of the values"
    if column.numbers_the_rows:
        return "identifier", "numbers the rows"
    if column.named(KEYED) and not column.named(PRIVATE) and column.kind != "date":
        many = column.distinct > FEW
        if column.named(PEOPLE) and (many or column.few_share):
            return "identifier", PERSON_KEY
        if many and column.few_share:
            return "identifier", "a key by its name, and few records share a value"
    return None


def _sensitive(column: Seen) -> tuple[Role, str] | None:
    # A date is known to others even where its subject is private; so is an age.
    if not column.named(PRIVATE) or column.named(WHEN) or column.kind == "date":
        return None
    if column.kind == "text" and column.nearly_unique:
        return "identifier", "private by its name, but nearly every record has a text of its own"
    if column.kind == "number" and column.few_share:
        return "sensitive", "the name speaks of something private; exact values may also single people out"
    return "sensitive", "the name speaks of something private"


def _harmless(column: Seen) -> tuple[Role, str] | None:
    if not column.texts:
        return "plain", "empty"
    if column.distinct == 1 and not column.nulls and column.records >= CROWD:
        return "plain", "the same for everybody"
    return None


def _quasi(column: Seen) -> tuple[Role, str]:
    if column.named(KNOWN) or column.named(WHEN):
        return "quasi", "by its name, something that others know about a person"
    if column.kind == "text" and sum(map(len, column.some)) > LONG * len(column.some):
        return "identifier", "long texts may hold anything, names among it"
    if column.nearly_unique and column.kind in ("text", "code"):
        return "identifier", "nearly every record has a value of its own"
    if column.filled >= ENOUGH and column.counts_up:
        return "identifier", "consecutive numbers, a different one for every record"
    return "quasi", f"a {column.kind} that may help to single people out"


def _shape(some: Sequence[str]) -> str | None:
    """What most of the values look like; a column may mix, say, phone numbers and e-mail addresses."""
    matches = {what: _share(re.compile(shape, re.I), some) for what, shape in SHAPES.items()}
    return max(matches, key=matches.__getitem__) if sum(matches.values()) >= 0.5 else None


def _share(pattern: re.Pattern[str], some: Sequence[str]) -> float:
    return sum(1 for text in some if pattern.fullmatch(text)) / len(some)
