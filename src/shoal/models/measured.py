"""Measured limits: a release is attacked, and only written if the attack stays below.

The models beside are conditions that a search can aim at, class by class. A limit is none: what an attack finds is
known when the release is finished. So searches do not see limits, and a release that exceeds one is refused; ask the
models for more, and try again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks

TOLERANCE = 1e-12


class MeasuredLimit(BaseModel):
    """The greatest success of an attack that is tolerated."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str
    max: float = Field(ge=0, le=1, strict=False)
    needs_sensitive: ClassVar[bool] = False

    def value(self, attacks: Attacks) -> float:
        """What the attacks measured."""
        raise NotImplementedError

    def holds(self, attacks: Attacks) -> bool:
        """Whether that stays within the limit."""
        return self.value(attacks) <= self.max + TOLERANCE

    @property
    def asked(self) -> str:
        """The limit in one line, for people."""
        return f"{self.model.replace('-', ' ')} at most {self.max:g}, measured"


class SinglingOutRisk(MeasuredLimit):
    """The share of people for whom exactly one record fits what others know of them."""

    model: Literal["singling-out-risk"] = "singling-out-risk"

    def value(self, attacks: Attacks) -> float:
        """The share."""
        return attacks.named("singling out").share


class LinkageRisk(MeasuredLimit):
    """How often a person is linked to their own record: by what others know, or by the order of the rows."""

    model: Literal["linkage-risk"] = "linkage-risk"

    def value(self, attacks: Attacks) -> float:
        """The share of right links; of other attacks, what they find beyond chance."""
        others = [risk.above for risk in attacks if risk.question == "linkability" and risk.name != "identity linking"]
        return max([attacks.named("identity linking").share, *others])


class InferenceRisk(MeasuredLimit):
    """How often a sensitive value is learned beyond what a guess without the release's classes gives."""

    model: Literal["inference-risk"] = "inference-risk"
    needs_sensitive: ClassVar[bool] = True

    def value(self, attacks: Attacks) -> float:
        """The most that an attack leaves above its control."""
        worst = attacks.worst("inference")
        return 0.0 if worst is None else worst.above


Limit = Annotated[SinglingOutRisk | LinkageRisk | InferenceRisk, Field(discriminator="model")]
