"""Codes of common classifications, and the groups that a code belongs to.

Groups follow from the way a code is written (its first characters) and from a few facts: the chapter of ICD-10 and the
section of NACE that a code belongs to, and the region of the world that a country lies in (M49, the regions of the
United Nations' statistics). Groups are named by codes, without titles. A value that is not such a code stays unchanged
below the top.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple

from pydantic import Field

from shoal.hierarchies.description import Description
from shoal.hierarchies.hierarchy import TOP, Hierarchy
from shoal.hierarchies.pieces import in_text_order

Classification = Literal["icd-10", "isco-08", "nace", "country"]
Path = tuple[str, ...]  # the groups of a code, from the narrowest to the widest


class ClassificationCodes(Description):
    """Generalize codes of a classification to their groups, then to ``*``.

    ``icd-10``: E11.9, E11, E10-E19, E00-E99. ``isco-08``: 2512, 251*, 25**, 2***. ``nace``: 01.11, 01.1, 01, A.
    ``country``: AT or AUT, Western Europe, Europe. A value that is not such a code stays unchanged below the top.
    """

    codes: Classification = Field(description="The classification: `icd-10`, `isco-08`, `nace` or `country`.")

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in text order."""
        leaves = in_text_order(values)
        classification = CLASSIFICATIONS[self.codes]
        if not leaves:
            return Hierarchy.empty(column, classification.groups + 2, "text")
        paths = {leaf: (leaf, *groups) for leaf in leaves if (groups := classification.path(leaf)) is not None}
        groups_above = _rest(paths.values())
        for leaf in leaves:  # a group among the codes, such as Europe, represents itself
            if leaf not in paths:
                rest = groups_above.get(leaf, (leaf,))
                paths[leaf] = (leaf,) * (classification.groups + 1 - len(rest)) + rest
        levels = [[paths[leaf][level] for leaf in leaves] for level in range(classification.groups + 1)]
        return Hierarchy.from_levels(column, leaves, [*levels, [TOP] * len(leaves)], leaf_order="text")


def _rest(paths: Iterable[Path]) -> dict[str, Path]:
    """Return, for every label, its path from the highest level that has it."""
    path_of: dict[str, Path] = {}
    for path in paths:
        for level, label in enumerate(path):
            if len(path) - level <= len(path_of.get(label, path)):
                path_of[label] = path[level:]
    return path_of


# ── ICD-10 ──────────────────────────────────────────────────────────────────────────────────────────────────

ICD = re.compile(r"([A-Z])([0-9])([0-9A-Z])(?:\.?([0-9A-Z]{1,4})|\.?-)?")
# The first category of every chapter; the next chapter ends it.
CHAPTERS = ("A00", "C00", "D50", "E00", "F00", "G00", "H00", "H60", "I00", "J00", "K00", "L00", "M00", "N00", "O00",
            "P00", "Q00", "R00", "S00", "U00", "V00", "Z00")  # fmt: skip


def icd_path(code: str) -> Path | None:
    """Return the groups of a code: E11.9 belongs to the category E11, to E10-E19, and to the chapter E00-E99."""
    match = ICD.fullmatch(code.strip().upper())
    if match is None:
        return None
    letter, tens, ones = match[1], match[2], match[3]
    return letter + tens + ones, f"{letter}{tens}0-{letter}{tens}9", _chapter(letter + tens)


@cache
def _chapter(start: str) -> str:
    at = max(i for i, first in enumerate(CHAPTERS) if first[:2] <= start)
    following = CHAPTERS[at + 1] if at + 1 < len(CHAPTERS) else "[00"
    if following[1:] == "00":  # the previous letter ends it
        return f"{CHAPTERS[at]}-{chr(ord(following[0]) - 1)}99"
    return f"{CHAPTERS[at]}-{following[0]}{int(following[1:]) - 1}"


# ── ISCO-08 ─────────────────────────────────────────────────────────────────────────────────────────────────

ISCO = re.compile(r"[0-9]{2,4}")
SUB_MAJOR = frozenset(
    f"{major}{sub}" for major, last in enumerate((3, 4, 6, 5, 4, 4, 3, 5, 3, 6)) for sub in range(1, last + 1)
)


def isco_path(code: str) -> Path | None:
    """Return the groups of a code: 2512 belongs to the minor group 251, sub-major group 25 and major group 2."""
    if not ISCO.fullmatch(code) or code[:2] not in SUB_MAJOR:
        return None
    return (code[:3].ljust(4, "*"), code[:2] + "**", code[0] + "***")


# ── NACE ────────────────────────────────────────────────────────────────────────────────────────────────────

NACE = re.compile(r"([A-V]?)([0-9]{2})(?:\.?([0-9])([0-9]{0,2}))?")
# The first division of every section of revision 2, and the last.
SECTIONS = {
    "A": (1, 3), "B": (5, 9), "C": (10, 33), "D": (35, 35), "E": (36, 39), "F": (41, 43), "G": (45, 47),
    "H": (49, 53), "I": (55, 56), "J": (58, 63), "K": (64, 66), "L": (68, 68), "M": (69, 75), "N": (77, 82),
    "O": (84, 84), "P": (85, 85), "Q": (86, 88), "R": (90, 93), "S": (94, 96), "T": (97, 98), "U": (99, 99),
}  # fmt: skip
SECTION_OF = {f"{n:02}": letter for letter, (first, last) in SECTIONS.items() for n in range(first, last + 1)}
# In revision 2.1 the divisions from 61 on have the next letter: its J ends with 60.
LATER = {division: chr(ord(letter) + 1) for division, letter in SECTION_OF.items() if int(division) >= 61}


def nace_path(code: str) -> Path | None:
    """Return the groups of a code: 01.11 belongs to 01.1, 01 and section A; a code with a letter keeps it."""
    match = NACE.fullmatch(code.strip())
    if match is None or match[2] not in SECTION_OF:
        return None
    letter, division, group = match[1], match[2], match[3]
    if letter and letter not in (SECTION_OF[division], LATER.get(division)):
        return None
    full_division = letter + division
    return f"{full_division}.{group}" if group else full_division, full_division, letter or SECTION_OF[division]


# ── Countries ───────────────────────────────────────────────────────────────────────────────────────────────

# Region, sub-region, and the codes of the countries in it: two letters and three.
WORLD = """
Africa | Northern Africa | DZ DZA EG EGY EH ESH LY LBY MA MAR SD SDN TN TUN
Africa | Eastern Africa | BI BDI DJ DJI ER ERI ET ETH IO IOT KE KEN KM COM MG MDG MU MUS MW MWI MZ MOZ RE REU RW RWA
Africa | Eastern Africa | SC SYC SO SOM SS SSD TF ATF TZ TZA UG UGA YT MYT ZM ZMB ZW ZWE
Africa | Middle Africa | AO AGO CD COD CF CAF CG COG CM CMR GA GAB GQ GNQ ST STP TD TCD
Africa | Southern Africa | BW BWA LS LSO NA NAM SZ SWZ ZA ZAF
Africa | Western Africa | BF BFA BJ BEN CI CIV CV CPV GH GHA GM GMB GN GIN GW GNB LR LBR ML MLI MR MRT NE NER NG NGA
Africa | Western Africa | SH SHN SL SLE SN SEN TG TGO
Americas | Caribbean | AG ATG AI AIA AW ABW BB BRB BL BLM BQ BES BS BHS CU CUB CW CUW DM DMA DO DOM GD GRD GP GLP
Americas | Caribbean | HT HTI JM JAM KN KNA KY CYM LC LCA MF MAF MQ MTQ MS MSR PR PRI SX SXM TC TCA TT TTO VC VCT
Americas | Caribbean | VG VGB VI VIR
Americas | Central America | BZ BLZ CR CRI GT GTM HN HND MX MEX NI NIC PA PAN SV SLV
Americas | South America | AR ARG BO BOL BR BRA BV BVT CL CHL CO COL EC ECU FK FLK GF GUF GS SGS GY GUY PE PER PY PRY
Americas | South America | SR SUR UY URY VE VEN
Americas | Northern America | BM BMU CA CAN GL GRL PM SPM US USA
Antarctica | Antarctica | AQ ATA
Asia | Central Asia | KG KGZ KZ KAZ TJ TJK TM TKM UZ UZB
Asia | Eastern Asia | CN CHN HK HKG JP JPN KP PRK KR KOR MN MNG MO MAC TW TWN
Asia | South-eastern Asia | BN BRN ID IDN KH KHM LA LAO MM MMR MY MYS PH PHL SG SGP TH THA TL TLS VN VNM
Asia | Southern Asia | AF AFG BD BGD BT BTN IN IND IR IRN LK LKA MV MDV NP NPL PK PAK
Asia | Western Asia | AE ARE AM ARM AZ AZE BH BHR CY CYP GE GEO IL ISR IQ IRQ JO JOR KW KWT LB LBN OM OMN PS PSE
Asia | Western Asia | QA QAT SA SAU SY SYR TR TUR YE YEM
Europe | Eastern Europe | BG BGR BY BLR CZ CZE HU HUN MD MDA PL POL RO ROU RU RUS SK SVK UA UKR
Europe | Northern Europe | AX ALA DK DNK EE EST FI FIN FO FRO GB GBR GG GGY IE IRL IM IMN IS ISL JE JEY LT LTU LV LVA
Europe | Northern Europe | NO NOR SE SWE SJ SJM
Europe | Southern Europe | AD AND AL ALB BA BIH ES ESP GI GIB GR GRC HR HRV IT ITA ME MNE MK MKD MT MLT PT PRT RS SRB
Europe | Southern Europe | SI SVN SM SMR VA VAT
Europe | Western Europe | AT AUT BE BEL CH CHE DE DEU FR FRA LI LIE LU LUX MC MCO NL NLD
Oceania | Australia and New Zealand | AU AUS CC CCK CX CXR HM HMD NF NFK NZ NZL
Oceania | Melanesia | FJ FJI NC NCL PG PNG SB SLB VU VUT
Oceania | Micronesia | FM FSM GU GUM KI KIR MH MHL MP MNP NR NRU PW PLW UM UMI
Oceania | Polynesia | AS ASM CK COK NU NIU PF PYF PN PCN TK TKL TO TON TV TUV WF WLF WS WSM
"""


@cache
def countries() -> dict[str, Path]:
    """Return the sub-region and region of every country, by either code."""
    groups_of: dict[str, Path] = {}
    for line in WORLD.strip().splitlines():
        region, part, codes = line.split(" | ")
        groups_of |= dict.fromkeys(codes.split(), (part, region))
    return groups_of


def country_path(code: str) -> Path | None:
    """Return the groups of a code: AT and AUT belong to Western Europe and to Europe."""
    return countries().get(code.strip().upper())


# ── All of them ─────────────────────────────────────────────────────────────────────────────────────────────


class _CodePaths(NamedTuple):
    path: Callable[[str], Path | None]
    groups: int  # levels between a code and the top


CLASSIFICATIONS: dict[Classification, _CodePaths] = {
    "icd-10": _CodePaths(icd_path, 3),
    "isco-08": _CodePaths(isco_path, 3),
    "nace": _CodePaths(nace_path, 3),
    "country": _CodePaths(country_path, 2),
}
