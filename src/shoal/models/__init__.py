"""Privacy models: the conditions that equivalence classes must satisfy.

A new model is one Python class and its name in ``Requirement``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shoal.models.base import PrivacyModel, SensitiveModel
from shoal.models.closeness import BasicLikeness, DeltaDisclosure, EnhancedLikeness, TCloseness
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.models.release import AverageRisk, PopulationUniqueness, ReleaseModel, SampleUniqueness
from shoal.models.shares import LimitedGain
from shoal.models.size import AlphaK, DeltaPresence, KAnonymity, KMap, MaximumRisk, PopulationModel, PSensitive
from shoal.models.spread import KEAnonymity

Requirement = Annotated[
    KAnonymity
    | KMap
    | DeltaPresence
    | PSensitive
    | AlphaK
    | DistinctDiversity
    | EntropyDiversity
    | RecursiveDiversity
    | TCloseness
    | BasicLikeness
    | EnhancedLikeness
    | DeltaDisclosure
    | LimitedGain
    | KEAnonymity
    | MaximumRisk
    | AverageRisk
    | SampleUniqueness
    | PopulationUniqueness,
    Field(discriminator="model"),
]

__all__ = ["PopulationModel", "PrivacyModel", "ReleaseModel", "Requirement", "SensitiveModel"]
