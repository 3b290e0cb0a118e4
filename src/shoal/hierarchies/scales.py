"""Ordered values: words such as low, medium and high, grades, numbered stages, groups such as 18-24 and 65+.

If values have an order, a cell that covers several of them contains neighbours, ``{low, medium}`` and never ``{low,
high}``. The words are known in English, German, French, Italian, Spanish and Portuguese; case, accents and punctuation
between words are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pydantic import Field, field_validator

from shoal.hierarchies.description import Description, in_a_row
from shoal.hierarchies.hierarchy import TOP, Hierarchy
from shoal.notation.forms import Range, read_number, read_range
from shoal.notation.labels import written_set

Scale = Literal[
    "agreement", "frequency", "amount", "size", "quality", "satisfaction", "severity", "education", "marks", "numbered",
    "ranges",
]  # fmt: skip


class ScalePosition(NamedTuple):
    """The position of a value on its scale."""

    rank: float
    group: int  # level 1 joins neighbours with the same number; a number of its own is a group of one


class Ordered(Description):
    """Values in the order of a scale or list; neighbours are joined level by level, then ``*``.

    Scales: ``agreement``, ``frequency``, ``amount``, ``size``, ``quality``, ``satisfaction``, ``severity`` and
    ``education`` are words; ``marks`` are A+ to F, ``numbered`` are texts that differ in one number (Stage II, 9th
    grade), ``ranges`` are groups of numbers (under 18, 18-64, 65+).
    """

    ordered: Scale | tuple[str, ...] = Field(description="The name of a scale, or the values from first to last.")

    @field_validator("ordered", mode="before")
    @classmethod
    def _name_or_list(cls, value: Any) -> Any:
        if isinstance(value, str) and value not in SCALES:
            raise ValueError(f"must be one of {in_a_row(SCALES)}, or a list of values")
        if isinstance(value, list | tuple):
            if not value or len(set(map(str, value))) < len(value):
                raise ValueError("must list one or more values, each of them once")
            return tuple(map(str, value))
        return value

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in order; for a scale, those that occur."""
        scale = self.ordered
        if isinstance(scale, str):
            positions = places(scale, sorted(set(values)))
            leaves = sorted(positions, key=lambda text: (positions[text].rank, text))
            groups = [positions[text].group for text in leaves]
        else:
            leaves, groups = list(scale), []
        if not leaves:
            return Hierarchy.empty(column, 2, "rank")
        joined = [_named(leaves, groups)] if groups and isinstance(scale, str) and scale in WORDS else _pairs(leaves)
        joined = [level for level in joined if 1 < len(set(level)) < len(leaves)]
        return Hierarchy.from_levels(column, leaves, [leaves, *joined, [TOP] * len(leaves)], leaf_order="rank")


def _named(leaves: Sequence[str], groups: Sequence[int]) -> list[str]:
    """Replace every leaf by the set of its group."""
    members = {
        group: [leaf for leaf, group_of_leaf in zip(leaves, groups, strict=True) if group_of_leaf == group]
        for group in set(groups)
    }
    names = {group: texts[0] if len(texts) == 1 else written_set(texts) for group, texts in members.items()}
    return [names[group] for group in groups]


def _pairs(leaves: Sequence[str]) -> list[list[str]]:
    """Return pairs of neighbours, pairs of pairs, and so on."""
    widths = [2**i for i in range(1, len(leaves).bit_length()) if 2**i < len(leaves)]
    return [_named(leaves, [i // width for i in range(len(leaves))]) for width in widths]


def places(scale: str, values: Sequence[str]) -> dict[str, ScalePosition]:
    """Return the position of each value on a scale; values that are not on it are left out."""
    if scale in WORDS:
        position_of = _words(scale)
        return {text: position_of[word] for text in values if (word := folded(text)) in position_of}
    return {"marks": _marks, "numbered": _numbered, "ranges": _ranges}[scale](values)


def may_hold(scale: str, values: Sequence[str]) -> bool:
    """Return False if one of these values already shows that a column is not on the scale as a whole."""
    if scale == "ranges":  # whether groups overlap can be judged for the whole column only
        return all(_group(text) is not None for text in values)
    return len(places(scale, values)) == len(values)


def folded(text: str) -> str:
    """Normalize to lower case without accents, with one space between words and nothing else."""
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss").replace("ẞ", "ss").casefold())
    return " ".join(re.findall(r"[a-z0-9]+", "".join(c for c in plain if not unicodedata.combining(c))))


# ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────

# A dash before every step, from low to high; a blank line separates the groups that level 1 joins.
WORDS: dict[str, str] = {
    "agreement": """
        - strongly disagree, disagree strongly, completely disagree, totally disagree, fully disagree, stimme
          überhaupt nicht zu, stimme gar nicht zu, trifft überhaupt nicht zu, trifft gar nicht zu, pas du tout
          d'accord, fortement en désaccord, tout à fait en désaccord, per niente d'accordo, fortemente in
          disaccordo, totalmente in disaccordo, totalmente en desacuerdo, muy en desacuerdo, discordo
          totalmente, discordo fortemente
        - disagree, stimme nicht zu, trifft nicht zu, pas d'accord, en désaccord, in disaccordo, non d'accordo,
          en desacuerdo, discordo
        - somewhat disagree, slightly disagree, rather disagree, tend to disagree, disagree somewhat, disagree
          slightly, stimme eher nicht zu, trifft eher nicht zu, plutôt pas d'accord, plutôt en désaccord,
          piuttosto in disaccordo, poco d'accordo, algo en desacuerdo, discordo parcialmente, discordo em parte

        - neutral, neither agree nor disagree, neither, undecided, unsure, teils teils, weder noch,
          unentschieden, ni d'accord ni pas d'accord, ni en accord ni en désaccord, neutre, né d'accordo né in
          disaccordo, neutrale, indeciso, ni de acuerdo ni en desacuerdo, nem concordo nem discordo, neutro

        - somewhat agree, slightly agree, rather agree, tend to agree, agree somewhat, agree slightly, stimme
          eher zu, trifft eher zu, plutôt d'accord, piuttosto d'accordo, abbastanza d'accordo, algo de acuerdo,
          concordo parcialmente, concordo em parte
        - agree, stimme zu, trifft zu, d'accord, d'accordo, de acuerdo, concordo
        - strongly agree, agree strongly, completely agree, totally agree, fully agree, stimme voll zu, stimme
          voll und ganz zu, stimme völlig zu, trifft voll zu, trifft voll und ganz zu, tout à fait d'accord,
          fortement d'accord, totalmente d'accordo, fortemente d'accordo, molto d'accordo, totalmente de
          acuerdo, muy de acuerdo, concordo totalmente, concordo fortemente
    """,
    "frequency": """
        - never, not at all, nie, niemals, jamais, mai, nunca
        - almost never, hardly ever, very rarely, fast nie, sehr selten, presque jamais, quasi mai, casi nunca,
          quase nunca
        - rarely, seldom, selten, rarement, raramente, di rado, rara vez, raras vezes

        - sometimes, occasionally, now and then, manchmal, gelegentlich, ab und zu, parfois, quelquefois, de
          temps en temps, a volte, qualche volta, talvolta, a veces, algunas veces, às vezes, por vezes, algumas
          vezes

        - often, frequently, häufig, oft, souvent, fréquemment, spesso, frequentemente, a menudo,
          frecuentemente, con frecuencia, muitas vezes, com frequência
        - very often, usually, mostly, most of the time, sehr oft, sehr häufig, meistens, meist, très souvent,
          la plupart du temps, molto spesso, di solito, muy a menudo, casi siempre, normalmente, almost always,
          nearly always, fast immer, presque toujours, quasi sempre, quase sempre
        - always, immer, toujours, sempre, siempre
    """,
    "amount": """
        - none, zero, no, kein, keine, aucun, aucune, nessuno, nessuna, ninguno, ninguna, nenhum, nenhuma
        - very low, very little, sehr niedrig, sehr gering, très faible, très bas, molto basso, molto bassa, muy
          bajo, muy baja, muito baixo, muito baixa
        - low, little, niedrig, gering, tief, faible, bas, basse, basso, bassa, bajo, baja, baixo, baixa

        - medium, middle, moderate, average, intermediate, mid, med, mittel, mässig, mäßig, durchschnittlich,
          moyen, moyenne, modéré, modérée, medio, media, moderato, moderata, moderado, moderada, médio, média,
          intermedio

        - high, hoch, élevé, élevée, haut, haute, fort, alto, alta
        - very high, sehr hoch, très élevé, très élevée, très haut, molto alto, molto alta, muy alto, muy alta,
          muito alto, muito alta
    """,
    "size": """
        - xxs
        - xs, very small, tiny, extra small, sehr klein, très petit, molto piccolo, muy pequeño, muito pequeno
        - s, small, klein, petit, petite, piccolo, piccola, pequeño, pequeña, pequeno, pequena

        - m, medium, mid, middle, mittel, mittelgross, moyen, moyenne, medio, media, mediano, mediana, médio,
          média

        - l, large, big, gross, groß, grand, grande
        - xl, very large, extra large, huge, sehr gross, sehr groß, très grand, molto grande, muy grande, muito
          grande
        - xxl
    """,
    "quality": """
        - very poor, very bad, sehr schlecht, très mauvais, très mauvaise, pessimo, molto scarso, muy malo, muy
          mala, péssimo, muito ruim, muito mau
        - poor, bad, schlecht, mauvais, mauvaise, scarso, cattivo, cattiva, malo, mala, ruim, mau

        - fair, average, acceptable, sufficient, mässig, mäßig, mittelmässig, mittelmäßig, befriedigend,
          ausreichend, passable, moyen, moyenne, discreto, sufficiente, regular, razoável

        - good, gut, bon, bonne, buono, buona, bueno, buena, bom, boa
        - very good, sehr gut, très bon, très bonne, molto buono, molto buona, muy bueno, muy buena, muito bom,
          muito boa
        - excellent, outstanding, ausgezeichnet, hervorragend, eccellente, ottimo, excelente, óptimo, ótimo
    """,
    "satisfaction": """
        - very dissatisfied, very unsatisfied, sehr unzufrieden, très insatisfait, molto insoddisfatto, muy
          insatisfecho, muito insatisfeito
        - dissatisfied, unsatisfied, not satisfied, somewhat dissatisfied, unzufrieden, eher unzufrieden,
          insatisfait, plutôt insatisfait, insoddisfatto, insatisfecho, insatisfeito

        - neutral, neither satisfied nor dissatisfied, neither, teils teils, weder noch, neutre, neutrale,
          neutro

        - satisfied, somewhat satisfied, zufrieden, eher zufrieden, satisfait, plutôt satisfait, soddisfatto,
          satisfecho, satisfeito
        - very satisfied, completely satisfied, sehr zufrieden, très satisfait, molto soddisfatto, muy
          satisfecho, muito satisfeito
    """,
    "severity": """
        - none, absent, no symptoms, keine, aucun, aucune, assente, nessuno, ausente, ninguno, nenhum
        - very mild, minimal, sehr leicht, très léger, molto lieve, muy leve, muito leve
        - mild, slight, light, leicht, léger, légère, lieve, leve, ligero

        - moderate, medium, mittel, mässig, mäßig, mittelschwer, modéré, modérée, moderato, moderata, moderado,
          moderada

        - severe, serious, marked, schwer, stark, sévère, grave, severo, severa
        - very severe, extreme, critical, sehr schwer, très sévère, très grave, molto grave, muy grave, muito
          grave
    """,
    "education": """
        - none, no schooling, no education, illiterate, keine, ohne abschluss, aucun, aucune, nessuno, nessuna,
          ninguno, sin estudios, nenhum, sem escolaridade
        - preschool, pre school, kindergarten, nursery
        - primary, primary school, elementary, elementary school, basic, grundschule, primaire, école primaire,
          primaria, elementare, licenza elementare, primario, educación primaria, ensino fundamental, primário

        - lower secondary, middle school, hauptschule, realschule, collège, licenza media, secundaria inferior
        - secondary, secondary school, high school, highschool, upper secondary, hs, hs grad, abitur, gymnasium,
          secondaire, lycée, baccalauréat, secondaria, diploma, secundaria, bachillerato, secundário, ensino
          médio
        - vocational, some college, associate, post secondary, lehre, berufsausbildung, formación profesional

        - bachelor, bachelors, bachelor s, bachelor degree, bachelor s degree, college, undergraduate,
          university, tertiary, higher, hochschule, universität, licence, supérieur, laurea triennale, laurea,
          universidad, universitario, superior, universidade, ensino superior, graduação
        - master, masters, master s, master degree, master s degree, graduate, postgraduate, graduate school,
          laurea magistrale, maestría, mestrado, maîtrise
        - doctorate, doctoral, phd, ph d, doctor, promotion, doctorat, dottorato, doctorado, doutorado
    """,
}


@cache
def _words(scale: str) -> Mapping[str, ScalePosition]:
    positions: dict[str, ScalePosition] = {}
    rank = 0
    for group, lines in enumerate(re.split(r"\n\s*\n", WORDS[scale].strip())):
        for step in lines.split("- ")[1:]:
            for word in step.split(","):
                positions.setdefault(folded(word), ScalePosition(rank, group))
            rank += 1
    return positions


# ── Marks, numbers and ranges ───────────────────────────────────────────────────────────────────────────────

_MARK = re.compile(r"([A-F])([+-]?)")


def _marks(values: Sequence[str]) -> dict[str, ScalePosition]:
    """Return positions of marks: A+ is above A, which is above A-; all of them come before B+."""
    matches = {text: _MARK.fullmatch(text.strip()) for text in values}
    return {
        text: ScalePosition(3 * "ABCDEF".index(match[1]) + {"+": 0, "": 1, "-": 2}[match[2]], "ABCDEF".index(match[1]))
        for text, match in matches.items()
        if match
    }


_NUMERALS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_ROMAN = {numeral: i for i, numeral in enumerate(_NUMERALS, start=1)}
_NUMBERED = re.compile(r"(.*?)\b([0-9]{1,3})(st|nd|rd|th|er|e|eme|o|a)?\b(.*)")
_IN_ROMAN = re.compile(r"(.*?)\b(viii|vii|vi|v|xii|xi|x|ix|iv|iii|ii|i)\b(.*)")


def _numbered(values: Sequence[str]) -> dict[str, ScalePosition]:
    """Return positions of texts that differ only in one number; texts unlike most others are left out."""
    read: dict[str, tuple[str, int]] = {}
    for text in values:
        plain = folded(text)
        if match := _NUMBERED.fullmatch(plain):
            read[text] = (f"{match[1]}#{'th' * bool(match[3])}{match[4]}", int(match[2]))
        elif match := _IN_ROMAN.fullmatch(plain):
            read[text] = (f"{match[1]}#th{match[3]}", _ROMAN[match[2]])
    shapes = [shape for shape, _ in read.values() if shape != "#"]  # 01, 02 and so on may be codes without an order
    if not shapes:
        return {}
    common = max(sorted(set(shapes)), key=shapes.count)
    return {text: ScalePosition(n, n) for text, (shape, n) in read.items() if shape == common}


_MONEY = re.compile(r"[$€£¥]|\b(?:USD|EUR|GBP|CHF)\b")


def _ranges(values: Sequence[str]) -> dict[str, ScalePosition]:
    """Return positions of consecutive groups of numbers; none if they overlap."""
    read = {text: span for text in values if (span := _group(text)) is not None}
    if sum(isinstance(span, Range) for span in read.values()) < 2:
        return {}
    ends = {text: (g.first, g.last) if isinstance(g, Range) else (g, g) for text, g in read.items()}
    in_order = sorted(ends, key=lambda text: (*ends[text], text))
    for before, after in pairwise(in_order):
        if ends[before][1] > ends[after][0]:  # groups that share an end are common: 0-10, 10-20
            return {}
    return {text: ScalePosition(i, i) for i, text in enumerate(in_order)}


def _group(text: str) -> Range | Decimal | None:
    """Read a group of numbers, or one number; amounts of money may have their sign."""
    plain = _MONEY.sub("", text).strip()
    span = read_range(plain)
    return span if span is not None else read_number(plain)


SCALES: tuple[str, ...] = (*WORDS, "marks", "numbered", "ranges")
