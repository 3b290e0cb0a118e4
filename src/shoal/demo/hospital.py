"""A fictitious hospital of ten thousand patients, and a voter register that identifies them.

Every draw is a uniform number scaled to whole weights, so the same seed gives the same bytes on any machine;
nothing depends on how a library samples a normal distribution or shuffles an array.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import DataError

Integers = NDArray[np.int64]

YEAR = 2024  # ages are counted on the last day of this year: who is 0 was born in it
ADULT = 18

# Lists in one text, to be split: shorter to read.
FIRST_NAMES = {
    "female": (
        "Aaliyah Abena Agnes Aisha Alice Amara Amina Ana Anneke Aroha Astrid Ayelet Beatriz Bianca Carmen "
        "Chiara Chloe Dalia Daniela Deepa Dorothy Elena Elif Emily Esther Eun-ji Fatima Fernanda Freya Grace "
        "Greta Hanna Helen Huong Ines Ingrid Irina Jasmine Joanna Keiko Kavya Latoya Leila Linh Lucia "
        "Mairead Maria Mei Miriam Nadia Ngozi Noor Olga Paula Priya Rosa Ruth Sakura Shirin Sofia Svetlana "
        "Tamika Thandiwe Valentina Wanjiru Xiu Yael Yasmin Zofia"
    ),
    "male": (
        "Aaron Abdul Adam Ahmed Ajay Alejandro Anders Andrei Antonio Arjun Bao Benjamin Bilal Bogdan Carlos "
        "Chidi Chen Darius David Diego Dmitri Edward Emeka Enzo Farid Felipe Francis Georgi Giorgio Hamza "
        "Hans Haruto Hassan Hugo Ibrahim Ivan Jakub James Jamal Javier Jin Joao Joseph Kenji Kofi Kwame Lars "
        "Liam Luca Malik Marcus Matteo Mehmet Miguel Minh Mohammed Nikhil Noah Oluwaseun Omar Pedro Rajesh "
        "Robert Samuel Sanjay Sergei Tariq Thomas Tomasz Wei Wiremu Yusuf"
    ),
}
FAMILY = (
    "Abebe Acheampong Adeyemi Ahmadi Ali Alvarez Andersen Baker Banerjee Barbosa Bauer Becker Bello "
    "Bianchi Brown Castillo Chanda Cohen Conti Costa Das Demir Diallo Diaz Dubois Edwards Eze Ferrari "
    "Fischer Flores Friedman Garcia Georgiou Goldberg Gomez Gupta Haddad Hall Hansen Hernandez Ho Hoang "
    "Hussein Ibarra Ito Ivanova Jackson Jansen Johnson Kamau Kang Kapoor Khalil Khan Kim Kovacs Kowalski "
    "Kumar Larsen Le Lee Levy Lin Lopez Maier Mancini Mbeki Mendoza Mensah Mohamud Moreau Morris Murphy "
    "Nakamura Ndlovu Nguyen Novak Nowak Nunes Obi O'Brien Okafor Okoye Osei Papadakis Parata Park Patel "
    "Pereira Petrov Pham Popescu Quispe Rahman Ramirez Reddy Ricci Rivera Rodrigues Rossi Roy Sahin Saito "
    "Santos Sato Schmidt Schwartz Sharma Silva Singh Smith Sokolov Suzuki Tan Taylor Thompson Torres Tran "
    "Tuiasosopo Usman Vargas Walker Wang Washington Weber Williams Wu Yamamoto Yilmaz Zhang Zhou"
)
SEX = ("female", "male")

# People per year of age, by groups of five years from 0-4 to 95-99.
PYRAMID = (48, 51, 53, 54, 57, 60, 65, 66, 64, 61, 66, 72, 70, 60, 51, 42, 31, 17, 7, 2)

# Final digits of the codes under each prefix, in order of falling size of the place.
ZIPS = {
    "021": "15 38 39 40 08 27 31 63 71",
    "014": "20 53 40 62 12 73",
    "018": "30 44 01 52 67 87 03 76",
    "121": "80 82 03 44 19 56 34",
    "122": "08 03 06 10 05 11 02",
    "124": "01 77 14 66 98",
    "351": "38 37 41 42 48 43 29",
    "357": "01 58 03 10 45 16 40 33 71 50",
}

# Where bands of age begin; a row of the next tables has a weight for each band.
AGES = (0, 6, 18, 26, 40, 65, 75)
JOBS = {
    "child": (1, 0, 0, 0, 0, 0, 0),
    "pupil": (0, 1, 4, 0, 0, 0, 0),
    "student": (0, 0, 46, 6, 1, 0, 0),
    "nurse": (0, 0, 3, 8, 8, 0, 0),
    "teacher": (0, 0, 1, 8, 8, 1, 0),
    "physician": (0, 0, 0, 3, 3, 1, 0),
    "engineer": (0, 0, 2, 9, 7, 1, 0),
    "programmer": (0, 0, 4, 9, 4, 0, 0),
    "clerk": (0, 0, 6, 12, 15, 1, 0),
    "shop assistant": (0, 0, 10, 10, 11, 1, 0),
    "cook": (0, 0, 6, 6, 5, 0, 0),
    "driver": (0, 0, 3, 6, 7, 1, 0),
    "electrician": (0, 0, 5, 6, 6, 0, 0),
    "bricklayer": (0, 0, 4, 5, 5, 0, 0),
    "farmer": (0, 0, 1, 3, 4, 2, 1),
    "homemaker": (0, 0, 1, 6, 8, 2, 1),
    "unemployed": (0, 0, 7, 6, 6, 0, 0),
    "retired": (0, 0, 0, 0, 4, 90, 98),
}
MARITAL = {
    "never married": (1, 1, 93, 48, 17, 8, 5),
    "married": (0, 0, 6, 45, 60, 63, 46),
    "divorced": (0, 0, 0, 4, 15, 13, 7),
    "separated": (0, 0, 1, 3, 4, 2, 1),
    "widowed": (0, 0, 0, 0, 4, 14, 41),
}
# Weight per age band for women, then for men, then the median cost of a stay in euros.
DISEASES = {
    "influenza": ((30, 18, 16, 12, 8, 9, 12), (30, 18, 16, 12, 8, 9, 12), 1900),
    "asthma": ((28, 22, 13, 10, 7, 5, 3), (32, 24, 10, 8, 5, 4, 3), 2300),
    "appendicitis": ((8, 28, 18, 9, 4, 2, 1), (8, 30, 21, 10, 4, 2, 1), 4200),
    "fracture": ((20, 28, 14, 11, 12, 17, 24), (22, 34, 26, 18, 12, 9, 12), 6100),
    "depression": ((0, 9, 22, 20, 13, 6, 4), (0, 5, 13, 13, 9, 4, 3), 7400),
    "diabetes": ((2, 5, 5, 7, 12, 13, 11), (2, 5, 5, 8, 15, 16, 12), 3600),
    "hypertension": ((0, 0, 2, 7, 15, 16, 14), (0, 0, 3, 9, 17, 16, 13), 2800),
    "heart disease": ((1, 1, 2, 4, 11, 18, 23), (1, 1, 2, 6, 18, 23, 25), 9800),
    "stroke": ((0, 0, 1, 2, 5, 9, 13), (0, 0, 1, 2, 7, 11, 13), 11500),
    "breast cancer": ((0, 0, 1, 6, 15, 12, 8), (0, 0, 0, 0, 0, 0, 0), 10400),
    "prostate cancer": ((0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 8, 15, 11), 9100),
    "lung cancer": ((0, 0, 0, 1, 5, 7, 5), (0, 0, 0, 1, 7, 10, 7), 13200),
    "dementia": ((0, 0, 0, 0, 1, 6, 19), (0, 0, 0, 0, 1, 5, 14), 8300),
}

POLICY = """\
# What may be published about the patients of the hospital.
# Roles: identifier (removed), quasi (an outsider may know it: generalized), sensitive (must not be disclosed
# about anyone: kept, and guarded by the requirements), plain (kept as it is).

[columns]
name    = { role = "identifier" }
birth   = { role = "quasi", hierarchy = { dates = ["month", "quarter", "year", "decade"] } }
zip     = { role = "quasi", hierarchy = { mask = "right" } }     # 02138 → 0213* → 021** → …
sex     = { role = "quasi", hierarchy = { flat = true } }        # kept or hidden, nothing between
disease = { role = "sensitive" }
cost    = { role = "sensitive" }                                 # no requirement of its own, see below

[columns.job]
role = "quasi"
[columns.job.hierarchy.tree."*"]
"in education" = ["child", "pupil", "student"]
professional   = ["engineer", "nurse", "physician", "programmer", "teacher"]
service        = ["clerk", "cook", "driver", "shop assistant"]
manual         = ["bricklayer", "electrician", "farmer"]
"at home"      = ["homemaker", "retired", "unemployed"]

[columns.marital]
role = "quasi"
[columns.marital.hierarchy.tree."*"]
single         = ["never married"]
"been married" = ["divorced", "married", "separated", "widowed"]

# Nobody stands in a crowd of fewer than five ...
[[require]]
model = "k-anonymity"
k = 5

# ... and no crowd has fewer than three diseases. Without the name of a column, cost would be held to it too.
[[require]]
model = "distinct-l-diversity"
column = "disease"
l = 3

[release]
algorithm = "optimal"
objective = "loss"
max_suppression = 0.02      # two records in a hundred may be hidden altogether
seed = 0
"""


_FOR_ANALYSIS = {  # what differs where the release is analysed: every class has its own labels, as fine as can be
    "# What may be published about the patients of the hospital.": (
        "# What may be published about the patients of the hospital, for analysis: each class has its own labels\n"
        "# and sets of values, instead of one level per column."
    ),
    '{ mask = "right" } }     #': '{ mask = "right" }, cells = "set" }     #',
    '[columns.job]\nrole = "quasi"': '[columns.job]\nrole = "quasi"\ncells = "set"',
    '[columns.marital]\nrole = "quasi"': '[columns.marital]\nrole = "quasi"\ncells = "set"',
    'algorithm = "optimal"\n': (
        'algorithm = "mondrian"      # "local" loses less still, and takes longer\ndimension = "gain"\n'
    ),
    "max_suppression = 0.02      # two records in a hundred may be hidden altogether": "max_suppression = 0",
}


def _for_analysis(policy: str) -> str:
    for tables, analysis in _FOR_ANALYSIS.items():
        if policy.count(tables) != 1:
            raise ValueError("every line that differs in the policy for analysis must occur exactly once")
        policy = policy.replace(tables, analysis)
    return policy


ANALYSIS_POLICY = _for_analysis(POLICY)


def hospital(n: int = 10_000, seed: int = 0) -> pa.Table:
    """Generate ``n`` patients: name, birth, zip, sex, job, marital, disease, cost; all as text."""
    return _people(n, np.random.Generator(np.random.PCG64(seed)))


def voters(hospital: pa.Table, n: int | None = None, seed: int = 1) -> pa.Table:
    """Generate a public register of ``n`` people, half of them patients: name, birth, zip, sex.

    Left out, ``n`` is such that 60% of the adult patients are registered. The other half never were in this
    hospital: whoever shares name and birth date with a patient is not among them. So half of the
    register is the control of a linkage attack, and the order of the rows says nothing.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    register = hospital.select(["name", "birth", "zip", "sex"])
    adults = np.flatnonzero(_adult(register))
    patients = (6 * len(adults) + 5) // 10 if n is None else n // 2
    strangers = patients if n is None else n - patients
    if patients > len(adults):
        raise DataError(
            f"a register of {n} people needs {patients} adult patients, but the table has {len(adults)}",
            "ask for a smaller register, or generate a larger hospital",
        )
    inside = register.take(adults[_order(rng, len(adults))[:patients]])
    registered = set(_identities(register))
    outside = register.slice(0, 0)
    while len(outside) < strangers:
        candidates = _people(2 * strangers, rng).select(register.column_names)
        new = np.array([identity not in registered for identity in _identities(candidates)], dtype=bool)
        outside = pa.concat_tables([outside, candidates.filter(pa.array(new & _adult(candidates)))])
    everyone = pa.concat_tables([inside, outside.slice(0, strangers)]).combine_chunks()
    return everyone.take(_order(rng, len(everyone)))


def _people(n: int, rng: np.random.Generator) -> pa.Table:
    age = _draw(rng, np.repeat(PYRAMID, 5), n)
    sex = _draw(rng, np.array([51, 49]), n)
    band = np.searchsorted(AGES, age, side="right") - 1

    year = (YEAR - 1970 - age).astype("datetime64[Y]")
    january = year.astype("datetime64[D]")
    days = (year + np.timedelta64(1, "Y")).astype("datetime64[D]") - january
    birth: NDArray[np.datetime64] = january + _below(rng, days.astype(np.int64)).astype("timedelta64[D]")

    women, men = _texts(FIRST_NAMES["female"].split()), _texts(FIRST_NAMES["male"].split())
    first_names = np.append(women, men)[_below(rng, np.where(sex == 0, len(women), len(men))) + len(women) * sex]
    family = _texts(FAMILY.split())[_below(rng, np.full(n, len(FAMILY.split())))]
    places = _places()
    disease = _draw_by(rng, [female + male for female, male, _ in DISEASES.values()], band + len(AGES) * sex)
    medians = np.array([median for _, _, median in DISEASES.values()])
    cost = medians[disease] * _log_normal()[_below(rng, np.full(n, 1000))] // 1000
    columns = {
        "name": first_names + " " + family,
        "birth": np.datetime_as_string(birth, unit="D"),
        "zip": _texts(places)[_draw(rng, np.array(list(places.values())), n)],
        "sex": _texts(SEX)[sex],
        "job": _texts(JOBS)[_draw_by(rng, list(JOBS.values()), band)],
        "marital": _texts(MARITAL)[_draw_by(rng, list(MARITAL.values()), band)],
        "disease": _texts(DISEASES)[disease],
        "cost": cost.astype(str),
    }
    return pa.table({name: pa.array(values.tolist(), pa.string()) for name, values in columns.items()})


def _places() -> dict[str, int]:
    """Return every zip code with its weight: the r-th region, and in it the r-th place, have weight 1/(r + 2)."""
    return {
        prefix + end: 100_000 // ((region + 2) * (rank + 2))
        for region, (prefix, ends) in enumerate(ZIPS.items())
        for rank, end in enumerate(ends.split())
    }


def _log_normal() -> Integers:
    """Return a thousand quantiles of a log-normal with median one and σ = 0.6, in thousandths.

    Rounded to whole numbers here, once, so that the last digit of a machine's ``exp`` cannot reach the data.
    """
    normal = NormalDist()
    return np.array([round(1000 * math.exp(0.6 * normal.inv_cdf((i + 0.5) / 1000))) for i in range(1000)])


def _texts(values: Iterable[str]) -> NDArray[np.object_]:
    return np.array(list(values), dtype=object)


def _below(rng: np.random.Generator, limits: Integers) -> Integers:
    """Draw a whole number in [0, limit) for every limit."""
    return np.floor(rng.random(len(limits)) * limits).astype(np.int64)


def _draw(rng: np.random.Generator, weights: Integers, n: int) -> Integers:
    """Draw ``n`` indices with probabilities proportional to whole weights."""
    edges = np.cumsum(weights)
    return np.searchsorted(edges, _below(rng, np.full(n, edges[-1])), side="right")


def _draw_by(rng: np.random.Generator, weights: Sequence[tuple[int, ...]], band: Integers) -> Integers:
    """Draw one index per person; ``weights[index][band]`` is its weight in the person's band."""
    edges = np.cumsum(weights, axis=0)
    ball = _below(rng, edges[-1][band])
    passed: Integers = np.sum(ball >= edges[:, band], axis=0, dtype=np.int64)
    return passed


def _order(rng: np.random.Generator, n: int) -> Integers:
    return np.argsort(rng.random(n), kind="stable")


def _identities(people: pa.Table) -> Iterator[tuple[str, str]]:
    return zip(people["name"].to_pylist(), people["birth"].to_pylist(), strict=True)


def _adult(people: pa.Table) -> NDArray[np.bool_]:
    """Return who was of age by the end of ``YEAR``; ISO dates compare as text."""
    born = people["birth"].to_pylist()
    return np.array([date < f"{YEAR - ADULT + 1}-01-01" for date in born], dtype=bool)
