"""Look at an unknown table: what each column is, which columns single people out, and a policy to start from.

Roles are guessed from names, shapes and counts, and guessed on the safe side: what is not clearly harmless
is taken for something an outsider may know. How well a set of columns tells people apart is counted, not
guessed. No value of the data gets into the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import toml
from shoal.errors import DataError
from shoal.table import codec
from shoal.table.builders import Flat, Mask
from shoal.table.dates import Dates
from shoal.table.intervals import Intervals
from shoal.table.propose import FEW, NUMBER, Proposal, date_formats, is_code, propose, sample, words

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine

Kind = Literal["number", "date", "code", "text", "category"]
Role = Literal["identifier", "quasi", "sensitive", "plain"]
Keys = NDArray[np.int64]

K = 5
MAX_NODES = 2_000_000  # of the lattice that a proposed policy makes the optimal search walk
STRONGEST = 12  # columns of which all pairs and triples are counted: 298 sets
MANY = 2_000_000  # distinct values of a column that come from an engine; of more,
SOME = 1_000  # so many are looked at
TUPLES = 5_000_000  # distinct tuples of the strongest columns that come from it; more are counted there, set by set
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


@dataclass(frozen=True)
class Column:
    """What a column holds, and what it may be to an intruder."""

    name: str
    kind: Kind
    distinct: int
    nulls: int
    role: Role
    reason: str
    hierarchy: Proposal | None  # for quasi columns
    levels: int = 1  # of the hierarchy, ground and top among them


@dataclass(frozen=True)
class Separation:
    """How well a set of columns tells the records apart; a null counts as a value."""

    columns: tuple[str, ...]
    records: int
    distinct: int  # tuples
    unique: int  # records that share their tuple with nobody
    alike: int  # pairs of records with the same tuple

    @classmethod
    def of(cls, columns: tuple[str, ...], counts: Keys) -> Separation:
        """From how many records have each tuple."""
        alike = int((counts * (counts - 1) // 2).sum())  # below 2^63 for up to four billion records
        return cls(columns, int(counts.sum()), len(counts), int((counts == 1).sum()), alike)

    @property
    def distinct_ratio(self) -> float:
        """Distinct tuples per record."""
        return self.distinct / self.records if self.records else 0.0

    @property
    def unique_ratio(self) -> float:
        """Share of the records that are alone with their tuple."""
        return self.unique / self.records if self.records else 0.0

    @property
    def separation_ratio(self) -> float:
        """Share of the pairs of records that differ; 0 where there is no pair."""
        pairs = self.records * (self.records - 1) // 2
        return (pairs - self.alike) / pairs if pairs else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "columns": list(self.columns),
            "distinct": self.distinct,
            "distinct_ratio": self.distinct_ratio,
            "separation_ratio": self.separation_ratio,
            "unique": self.unique,
            "unique_ratio": self.unique_ratio,
        }


@dataclass(frozen=True)
class Inspection:
    """What was found; ``policy`` turns it into something to run, and to edit."""

    records: int
    columns: tuple[Column, ...]
    separations: tuple[Separation, ...]  # single quasi columns, pairs, triples; of each the strongest first

    def having(self, role: Role) -> tuple[str, ...]:
        """The columns with this role."""
        return tuple(column.name for column in self.columns if column.role == role)

    def strongest(self, size: int, limit: int = 5) -> tuple[Separation, ...]:
        """The sets of ``size`` columns that tell most people apart."""
        return tuple(s for s in self.separations if len(s.columns) == size)[:limit]

    @property
    def nodes(self) -> int:
        """Size of the lattice that the proposed hierarchies span."""
        return prod(column.levels for column in self.columns)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        columns = []
        for column in self.columns:
            spec = _written(column.hierarchy)
            columns.append({**asdict(replace(column, hierarchy=None)), "hierarchy": spec})
        return {
            "records": self.records,
            "columns": columns,
            "separations": [separation.as_dict() for separation in self.separations],
        }

    def policy(self) -> str:
        """A policy in TOML that runs on this table as it is, with the reason for each role beside it."""
        if not self.having("quasi"):
            raise DataError(
                "no column is left to publish: all of them look like identifiers",
                "write a policy by hand and give the columns that are not identifiers their roles",
            )
        search = "optimal" if self.nodes <= MAX_NODES else "datafly"  # which needs no lattice
        lines = [
            "# Proposed from names, shapes and counts of the columns: read it before you trust it.",
            "# Roles: identifier (removed), quasi (an outsider may know it: generalized),",
            "# sensitive (must not be learned: kept), plain (kept as it is).",
            *self._warnings(),
            "",
            "[columns]",
            *(_line(column) for column in self.columns),
            "",
            "[[require]]",
            'model = "k-anonymity"',
            f"k = {max(1, min(K, self.records))}",
            *self._advice(),
            "",
            "[release]",
            f'algorithm = "{search}"',
            'objective = "loss"',
            "max_suppression = 0.05     # share of records that may be hidden altogether",
            'nulls = "category"         # a missing value is a value of its own',
            "seed = 0",
            *self._entity(),
        ]
        return "\n".join(lines) + "\n"

    def _entity(self) -> list[str]:
        """Five records of one person are no crowd: where a key of persons repeats, say how to count persons."""
        return [
            f"# entity = {toml.string(column.name)}    # uncomment to count persons: some have several records"
            for column in self.columns
            if column.reason == PERSON_KEY and column.distinct < self.records - column.nulls
        ][:1]

    def _warnings(self) -> list[str]:
        lines = []
        for size in (1, 2, 3):
            for best in self.strongest(size, 1):
                names = ", ".join(map(toml.string, best.columns))
                lines.append(f"# Alone with their {names}: {best.unique_ratio:.1%} of the records.")
        return lines

    def _advice(self) -> list[str]:
        if not self.having("sensitive"):
            return []
        return [
            "",
            "# Crowds can share a secret; to prevent it, uncomment and name one of the sensitive columns:",
            "# [[require]]",
            '# model = "distinct-l-diversity"',
            f"# column = {toml.string(self.having('sensitive')[0])}",
            "# l = 2",
        ]


def inspect(table: pa.Table | IbisEngine) -> Inspection:
    """Guess the roles of the columns of a table, and count who stands out; in an engine its rows stay there."""
    source: _InMemory | _InEngine = _InMemory(table) if isinstance(table, pa.Table) else _InEngine(table)
    seen = source.seen()
    roles = _roles(seen)
    specs = {
        column.name: propose(column.name, column.texts, column.counts) if column.all_there else Flat()
        for column, (role, _) in zip(seen, roles, strict=True)
        if role == "quasi"
    }
    width = {column.name: max(map(len, column.texts), default=0) for column in seen if column.name in specs}
    specs = _thinned(specs, width)
    columns = tuple(
        Column(
            column.name,
            column.kind,
            column.distinct,
            column.nulls,
            role,
            reason,
            specs.get(column.name),
            _levels(specs[column.name], width[column.name]) if role == "quasi" else 1,
        )
        for column, (role, reason) in zip(seen, roles, strict=True)
    )
    quasi = [column for column in seen if column.name in specs]
    return Inspection(seen[0].records if seen else 0, columns, source.separations(quasi))


def separations(codes: Mapping[str, Keys], records: int) -> tuple[Separation, ...]:
    """Count every column, and every pair and triple of the strongest columns; ``codes`` are not negative.

    Sets of one size are ranked by unique records, then by pairs told apart.
    """
    counted = _Keys(codes, None)
    return _ranked([counted((name,)) for name in codes], records, counted)


def _ranked(
    single: list[Separation], records: int, counted: Callable[[tuple[str, ...]], Separation]
) -> tuple[Separation, ...]:
    """The columns that were counted one by one, and pairs and triples of the strongest."""
    single.sort(key=_rank)
    strong = [s.columns[0] for s in single[:STRONGEST]]
    pairs = {pair: counted(pair) for pair in combinations(strong, 2)}
    triples = []
    for a, b, c in combinations(strong, 3):
        # A set that tells everybody apart still does with one more column.
        if any(pairs[pair].distinct == records for pair in ((a, b), (a, c), (b, c))):
            triples.append(Separation((a, b, c), records, records, records, 0))
        else:
            triples.append(counted((a, b, c)))
    return (*single, *sorted(pairs.values(), key=_rank), *sorted(triples, key=_rank))


def _rank(separation: Separation) -> tuple[int, int, int]:
    return -separation.unique, separation.alike, -separation.distinct


def _joined(left: Keys, n_left: int, right: Keys, n_right: int) -> tuple[Keys, int]:
    """One key per pair of keys, and how many there could be."""
    if n_left * n_right > 2**62:  # the product would overflow: number the keys that occur
        left = np.unique(left, return_inverse=True)[1]
        right = np.unique(right, return_inverse=True)[1]
        n_left, n_right = int(left.max()) + 1, int(right.max()) + 1
    return left * n_right + right, n_left * n_right


class _Keys:
    """Counts the tuples of columns from their codes; ``weights`` tell how many records a row stands for."""

    def __init__(self, codes: Mapping[str, Keys], weights: Keys | None) -> None:
        self._codes = codes
        self._weights = weights
        self._sizes = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
        self._pair: tuple[tuple[str, ...], tuple[Keys, int]] | None = None  # the last, as triples begin with it

    def __call__(self, columns: tuple[str, ...]) -> Separation:
        *before, last = columns
        key, size = self._codes[last], self._sizes[last]
        if before:
            key, size = _joined(*self._first(tuple(before)), key, size)
        return Separation.of(columns, self._counts(key, size))

    def _first(self, columns: tuple[str, ...]) -> tuple[Keys, int]:
        if len(columns) == 1:
            return self._codes[columns[0]], self._sizes[columns[0]]
        if self._pair is None or self._pair[0] != columns:
            a, b = columns
            self._pair = columns, _joined(self._codes[a], self._sizes[a], self._codes[b], self._sizes[b])
        return self._pair[1]

    def _counts(self, key: Keys, size: int) -> Keys:
        if size <= 4 * len(key) + 2**16:
            # As floats weights add up exactly, below 2^53 records.
            counts = np.bincount(key, self._weights, minlength=1)
            return counts[counts > 0].astype(np.int64)
        key = key.astype(np.int32) if size < 2**31 else key
        if self._weights is None:
            key = np.sort(key)
            starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
            return np.diff(np.append(starts, len(key))).astype(np.int64)
        order = np.argsort(key)
        key = key[order]
        return np.add.reduceat(self._weights[order], np.flatnonzero(np.append(True, key[1:] != key[:-1])))


# ── where the table is ──────────────────────────────────────────────────────────────────────────────────────


class _InMemory:
    """A table in memory."""

    def __init__(self, table: pa.Table) -> None:
        if len(set(table.column_names)) < table.num_columns:
            raise DataError("two columns of the table have the same name", "rename one of them")
        self._coded = {name: codec.texts(name, table[name]) for name in table.column_names}

    def seen(self) -> list[_Seen]:
        return [
            _Seen(name, coded.texts, _counts(coded, None), len(coded.codes), len(coded.texts), _numbers_rows(coded))
            for name, coded in self._coded.items()
        ]

    def separations(self, columns: Sequence[_Seen]) -> tuple[Separation, ...]:
        codes = {column.name: self._coded[column.name].codes.astype(np.int64) + 1 for column in columns}
        return separations(codes, columns[0].records if columns else 0)


class _InEngine:
    """A table whose rows stay in their engine: its values come here, and the tuples of its strongest columns."""

    def __init__(self, engine: IbisEngine) -> None:
        self._engine = engine

    def seen(self) -> list[_Seen]:
        distinct = self._engine.n_distinct(self._engine.columns)
        return [self._many(name, n) if n > MANY else self._few(name) for name, n in distinct.items()]

    def _few(self, name: str) -> _Seen:
        groups = self._engine.groups([name])
        coded = codec.texts(name, groups.table[name])
        n = groups.table[groups.weight].to_numpy().astype(np.int64)
        counts, records, distinct = _counts(coded, n), int(n.sum()), len(coded.texts)
        return _Seen(name, coded.texts, counts, records, distinct, _may_number_rows(coded.texts, records))

    def _many(self, name: str, distinct: int) -> _Seen:
        """Its values are too many to come here: some are looked at, and all are counted."""
        values, filled, records = self._engine.some_values(name, SOME)
        texts = codec.texts(name, values).texts
        return _Seen(name, texts, np.array([filled], np.int64), records, distinct, False, all_there=False)

    def separations(self, columns: Sequence[_Seen]) -> tuple[Separation, ...]:
        if not columns:
            return ()
        single = [
            Separation.of((column.name,), np.append(column.counts, [column.nulls] if column.nulls else []))
            if column.all_there
            else self._asked((column.name,))
            for column in columns
        ]
        strong = [s.columns[0] for s in sorted(single, key=_rank)[:STRONGEST]]
        records = columns[0].records
        if self._engine.n_tuples(strong) > TUPLES:
            return _ranked(single, records, self._asked)
        rows = self._engine.tally(strong)
        codes = {name: rows.coded(name).codes.astype(np.int64) + 1 for name in strong}
        return _ranked(single, records, _Keys(codes, rows.weights))

    def _asked(self, columns: tuple[str, ...]) -> Separation:
        return Separation(columns, *self._engine.crowds(columns))


def _counts(coded: codec.Coded, weights: Keys | None) -> Keys:
    """Records with each text."""
    there = coded.codes >= 0
    counts = np.bincount(coded.codes[there], None if weights is None else weights[there], len(coded.texts))
    return np.asarray(counts).astype(np.int64)


def _all_numbers(texts: Sequence[str]) -> bool:
    return all(map(NUMBER.fullmatch, texts))


def _may_number_rows(texts: Sequence[str], records: int) -> bool:
    """Whether the values are 1, 2, 3 … or 0, 1, 2 …, in any order: rows in an engine have none."""
    if records < 3 or len(texts) != records or not _all_numbers(texts):
        return False
    numbers = np.sort(np.array(texts, dtype=np.float64))
    return numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def _numbers_rows(coded: codec.Coded) -> bool:
    """Whether the values are these in their order."""
    if len(coded.codes) < 3 or len(coded.texts) != len(coded.codes) or not _all_numbers(coded.texts):
        return False
    rows = np.array(coded.texts, dtype=np.float64)[coded.codes]
    return rows[0] in (0, 1) and bool((np.diff(rows) == 1).all())


@dataclass(frozen=True, eq=False)
class _Seen:
    """A column as it came, with what the guesses need."""

    name: str
    texts: tuple[str, ...]
    counts: Keys  # records with each text
    records: int
    distinct: int
    numbers_the_rows: bool
    all_there: bool = True  # the texts: or they are too many, and some stand for all

    @cached_property
    def filled(self) -> int:
        return int(self.counts.sum())

    @property
    def nulls(self) -> int:
        return self.records - self.filled

    @cached_property
    def some(self) -> list[str]:
        return [text.strip()[:200] for text in sample(self.texts) if text.strip()]

    @cached_property
    def kind(self) -> Kind:
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
        return self.filled >= ENOUGH and 10 * self.distinct >= 9 * self.filled

    @property
    def counts_up(self) -> bool:
        """Whole numbers, no two alike, that leave few gaps: given out one after the other."""
        if self.distinct != self.filled or not _all_numbers(self.texts):
            return False
        numbers = np.array(self.texts, dtype=np.float64)
        return not self.all_there or bool((numbers == np.floor(numbers)).all() and np.ptp(numbers) < 2 * len(numbers))

    def named(self, vocabulary: re.Pattern[str]) -> bool:
        return any(map(vocabulary.fullmatch, words(self.name)))


def _roles(seen: Sequence[_Seen]) -> list[tuple[Role, str]]:
    roles = [_role(column) for column in seen]
    # A release without any quasi column promises nothing: take the next best for one.
    for spare in ("plain", "sensitive"):
        if "quasi" not in dict(roles):
            roles = [("quasi", "nothing else to link on") if role == spare else (role, why) for role, why in roles]
    return roles


def _role(column: _Seen) -> tuple[Role, str]:
    return _identifier(column) or _sensitive(column) or _harmless(column) or _quasi(column)


def _identifier(column: _Seen) -> tuple[Role, str] | None:
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


def _sensitive(column: _Seen) -> tuple[Role, str] | None:
    # A date is known to others even where its subject is private; so is an age.
    if not column.named(PRIVATE) or column.named(WHEN) or column.kind == "date":
        return None
    if column.kind == "text" and column.nearly_unique:
        return "identifier", "private by its name, but nearly every record has a text of its own"
    if column.kind == "number" and column.few_share:
        return "sensitive", "the name speaks of something private; exact values may also single people out"
    return "sensitive", "the name speaks of something private"


def _harmless(column: _Seen) -> tuple[Role, str] | None:
    if not column.texts:
        return "plain", "empty"
    if column.distinct == 1 and not column.nulls and column.records >= K:
        return "plain", "the same for everybody"
    return None


def _quasi(column: _Seen) -> tuple[Role, str]:
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


def _thinned(specs: Mapping[str, Proposal], width: Mapping[str, int]) -> dict[str, Proposal]:
    """Fewer levels, one at a time where there are most, until the lattice is small or nothing is left."""
    thin = dict(specs)
    while prod(_levels(spec, width[name]) for name, spec in thin.items()) > MAX_NODES:
        # Masks cannot lose a level, only all: they come when every other column has one step left.
        loosest = max(
            thin,
            key=lambda name: (
                _steps(thin[name]) > 1,
                isinstance(thin[name], Mask),
                _levels(thin[name], width[name]),
            ),
        )
        if isinstance(thin[loosest], Flat):
            break
        thin[loosest] = _thinner(thin[loosest])
    return thin


def _steps(spec: Proposal) -> int:
    match spec:
        case Intervals():
            return len(spec.intervals)
        case Dates():
            return len(spec.dates)
    return 0


def _thinner(spec: Proposal) -> Proposal:
    # Of four steps the second goes, of three the first, of two the last: 5 10 20 40, 5 20 40, 20 40, 20.
    gone = {2: 1, 3: 0}.get(_steps(spec), 1)
    match spec:
        case Intervals() if _steps(spec) > 1:
            return Intervals(intervals=spec.intervals[:gone] + spec.intervals[gone + 1 :])
        case Dates() if _steps(spec) > 1:
            kept = spec.dates[:gone] + spec.dates[gone + 1 :]
            return Dates(dates=kept, format=spec.format, pivot=spec.pivot)
    return Flat()


def _levels(spec: Proposal, longest: int) -> int:
    """Levels of the hierarchy that will be built, ground and top among them."""
    return longest + 1 if isinstance(spec, Mask) else _steps(spec) + 2


def _written(spec: Proposal | None) -> Any:
    return None if spec is None else spec.model_dump(mode="json", exclude_defaults=True)


def _line(column: Column) -> str:
    fields = {"role": column.role}
    if column.hierarchy is not None:
        fields["hierarchy"] = _written(column.hierarchy)
    return f"{toml.key(column.name)} = {toml.value(fields)}  # {column.reason}"
