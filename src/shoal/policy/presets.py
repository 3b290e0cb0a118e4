"""Presets: published rules by name, with their requirements and sources.

A preset adds its requirements to those of the policy. It encodes a published rule; it is not legal advice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.models import PrivacyModel
from shoal.models.measured import InferenceRisk, LinkageRisk, MeasuredLimit, SinglingOutRisk
from shoal.models.size import KAnonymity, MaximumRisk


@dataclass(frozen=True)
class Preset:
    """A published rule: its source, its requirements, and how shoal interprets it."""

    citation: str
    models: tuple[PrivacyModel, ...]
    note: str = ""  # which interpretation of the rule is applied
    limits: tuple[MeasuredLimit, ...] = ()  # limits on the results of attacks on the finished release


_EMA = (
    "EMA Policy 0070 (EMA/144064/2019), external guidance on its implementation (EMA/90915/2016), chapter 3, "
    "anonymisation of clinical reports: threshold 0.09"
)
_CANADA = "Health Canada, Public Release of Clinical Information: guidance document (2019), threshold 0.09"
_STRICT = "strict: 1/11 = 0.0909 exceeds 0.09, so every class has at least 12 records"
_CONVENTION = "convention: 0.09 is read as 1/11, so every class has at least 11 records"
_LECTURE = "G. Faggioli, k-anonymity, ℓ-diversity, t-closeness (lecture, University of Padua, 2025/26): "

PresetName = Literal[
    "hipaa-safe-harbor",
    "cms-cell",
    "ema-0070",
    "ema-0070-convention",
    "health-canada",
    "health-canada-convention",
    "cihi-public",
    "wp216",
    "lecture-low",
    "lecture-medium",
    "lecture-high",
]

PRESETS: dict[PresetName, Preset] = {
    "hipaa-safe-harbor": Preset(
        "45 CFR 164.514(b)(2), the Safe Harbor method of the HIPAA Privacy Rule",
        (),
        "identifiers are removed; ZIP codes, dates and ages need hierarchy = { safe_harbor = … }; "
        "the publisher must judge whether anyone has actual knowledge that could identify a person",
    ),
    "cms-cell": Preset(
        "CMS cell size suppression policy: no cell of 1 to 10 is displayed",
        (KAnonymity(k=11),),
    ),
    "ema-0070": Preset(_EMA, (MaximumRisk(max=0.09),), _STRICT),
    "ema-0070-convention": Preset(_EMA, (KAnonymity(k=11),), _CONVENTION),
    "health-canada": Preset(_CANADA, (MaximumRisk(max=0.09),), _STRICT),
    "health-canada-convention": Preset(_CANADA, (KAnonymity(k=11),), _CONVENTION),
    "cihi-public": Preset(
        "Health System Use Technical Advisory Committee, 'Best Practice' Guidelines for Managing the Disclosure of "
        "De-Identified Health Information (Canadian Institute for Health Information, October 2010): maximum risk 0.05 "
        "for public release",
        (MaximumRisk(max=0.05),),
        "the institute's own public file took thresholds from 0.04 to 0.05: K. El Emam, D. Paton, F. Dankar, G. Koru, "
        "BMC Medical Informatics and Decision Making 11:53, 2011",
    ),
    "wp216": Preset(
        "Article 29 Data Protection Working Party, Opinion 05/2014 on Anonymisation Techniques (WP216): "
        "singling out, linkability, inference",
        (KAnonymity(k=2),),
        "each criterion is tested by attacks on the finished release; the opinion gives no figures, these are "
        "shoal's: nobody singled out, at most 0.09 linked, at most 0.09 inferred beyond a baseline guess",
        (SinglingOutRisk(max=0), LinkageRisk(max=0.09), InferenceRisk(max=0.09)),
    ),
    "lecture-low": Preset(_LECTURE + "k from 3 to 5 for data of low sensitivity", (KAnonymity(k=3),), "minimum: 3"),
    "lecture-medium": Preset(_LECTURE + "k from 5 to 10 for medium sensitivity", (KAnonymity(k=5),), "minimum: 5"),
    "lecture-high": Preset(_LECTURE + "k from 10 to 20 for high sensitivity", (KAnonymity(k=10),), "minimum: 10"),
}
