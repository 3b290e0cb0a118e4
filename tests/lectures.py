"""The tables that lectures and papers work through by hand, for several tests of papers."""

from __future__ import annotations

import pyarrow as pa

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


def nine_people() -> pa.Table:
    """Race, birth, sex, ZIP code and marital status; the income, in thousands, is sensitive."""
    return _parsed(_NINE, ("race", "birth", "sex", "zip", "marital", "income"))


def twelve_patients() -> pa.Table:
    """The patients of the Datafly example: race, birth, gender and ZIP code."""
    return _parsed(_TWELVE, ("race", "birth", "gender", "zip"))


def _parsed(text: str, names: tuple[str, ...]) -> pa.Table:
    rows = [line.split() for line in text.strip().splitlines()]
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
