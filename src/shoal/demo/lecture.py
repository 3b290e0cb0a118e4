"""Small tables used to teach k-anonymity and related models, for the tutorial and for experiments."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from shoal.policy import Policy

_NINE = """
asian 64/04/12 F 35138 divorced 33
asian 64/09/13 F 35142 divorced 54
asian 64/04/15 F 35148 married 22
black 63/03/15 M 35138 married 11
black 63/02/18 M 35138 married 178
black 64/09/27 F 35137 single 23
white 64/09/27 F 35137 single 23
white 64/09/27 F 35141 single 23
white 64/09/27 F 35141 widow 56
"""

_TWELVE = """
black 9/20/65 male 02141
black 2/14/65 male 02141
black 10/23/65 female 02138
black 8/24/65 female 02138
black 11/7/64 female 02138
black 12/1/64 female 02138
white 10/23/64 male 02138
white 3/15/65 female 02139
white 8/13/64 male 02139
white 5/5/64 male 02139
white 2/13/67 male 02138
white 3/21/67 male 02138
"""

_CLASSES = {  # age, ZIP code, nationality: the illnesses of its four people
    ("20-29", "130**", "*"): ("heart", "heart", "viral", "viral"),
    ("40-59", "14***", "Asian"): ("cancer", "flu", "heart", "flu"),
    ("30-39", "1322*", "American"): ("cancer", "cancer", "cancer", "cancer"),
}

_BANDS = ((50, 0, 30, 50, 10), (110, 5, 5, 5, 5), (20, 50, 40, 10, 20), (0, 0, 10, 70, 40), (40, 10, 80, 20, 60))


def nine_people() -> pa.Table:
    """Race, birth, sex, ZIP code and marital status; the income, in thousands, is sensitive."""
    return _parsed(_NINE, ("race", "birth", "sex", "zip", "marital", "income"))


def nine_people_policy(k: int = 2, **release: object) -> Policy:
    """Full-domain generalization of the nine people: 288 nodes."""
    been = ["divorced", "married", "widow"]
    return Policy.of({
        "columns": {
            "race": {"role": "quasi", "hierarchy": {"tree": {"person": ["asian", "black", "white"]}}},
            "birth": {"role": "quasi", "hierarchy": {"dates": ["month", "year"], "format": "%y/%m/%d", "pivot": 30}},
            "sex": {"role": "quasi"},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "marital": {
                "role": "quasi",
                "hierarchy": {"tree": {"*": {"been_married": been, "single": ["single"]}}},
            },
            "income": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": k}],
        "release": release,
    })  # fmt: skip


def twelve_patients() -> pa.Table:
    """The patients of the Datafly example: race, birth, gender and ZIP code."""
    return _parsed(_TWELVE, ("race", "birth", "gender", "zip"))


def twelve_patients_policy(**release: object) -> Policy:
    """A date of birth is generalized to its year, a ZIP code loses its last digits."""
    return Policy.of({
        "columns": {
            "race": {"role": "quasi"},
            "birth": {"role": "quasi", "hierarchy": {"dates": ["year"], "format": "%m/%d/%y", "pivot": 30}},
            "gender": {"role": "quasi"},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": release,
    })  # fmt: skip


def medical_records() -> pa.Table:
    """Twelve records in three classes of four, already generalized."""
    rows = [(*tuple_, illness) for tuple_, illnesses in _CLASSES.items() for illness in illnesses]
    return _table(rows, ("age", "zip", "nationality", "illness"))


def income_bands() -> pa.Table:
    """Five classes of people whose incomes lie in five bands."""
    rows = [
        (f"class {i}", f"band {band}")
        for i, counts in enumerate(_BANDS, start=1)
        for band, n in enumerate(counts, start=1)
        for _ in range(n)
    ]
    return _table(rows, ("class", "income"))


def _parsed(text: str, names: tuple[str, ...]) -> pa.Table:
    return _table([tuple(line.split()) for line in text.strip().splitlines()], names)


def _table(rows: Sequence[tuple[str, ...]], names: tuple[str, ...]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
