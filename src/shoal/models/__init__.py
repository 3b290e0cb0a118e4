"""What a class must satisfy. A new model is one class here and its name in ``Requirement``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shoal.models.base import PrivacyModel, SensitiveModel
from shoal.models.closeness import TCloseness
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.models.size import KAnonymity, PSensitive

Requirement = Annotated[
    KAnonymity | PSensitive | DistinctDiversity | EntropyDiversity | RecursiveDiversity | TCloseness,
    Field(discriminator="model"),
]

__all__ = ["PrivacyModel", "Requirement", "SensitiveModel"]
