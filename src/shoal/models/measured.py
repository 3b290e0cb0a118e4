"""Measured limits: a release is attacked, and only written if the attack stays below.

The models beside are conditions that a search can aim at, class by class. A limit is none: what an attack finds is
known when the release is finished. So searches do not see limits, and a release that exceeds one is refused; ask the
models for more, and try again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from shoal.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks, Question

TOLERANCE = 1e-12


class MeasuredLimit(BaseModel):
    """The greatest success of an attack that is tolerated."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str
    max: float = Field(ge=0, le=1, strict=False)
    needs_sensitive: ClassVar[bool] = False
    question: ClassVar[Question]  # that the limit answers

    def value(self, attacks: Attacks) -> float:
        """What the attacks measured; NaN where none that could tell was run."""
        raise NotImplementedError

    def untold(self, attacks: Attacks) -> str:
        """What the attacks lacked, so that a figure within the limit proves nothing; empty where they lacked nothing.

        What an attack reached it has reached all the same: a figure above the limit fails, whatever was missing.
        """
        if math.isnan(self.value(attacks)):
            return "no attack was run that could tell"
        return attacks.untold(self.question, self.max)

    def judge(self, attacks: Attacks | None, missing: str = "") -> Verdict:
        """Whether what the attacks on a release found stays within the limit; unknown without attacks.

        ``missing`` is what the attacks on this table could not know, such as whose the records are.
        """
        value = math.nan if attacks is None else self.value(attacks)
        missing = "needs the original" if attacks is None else self.untold(attacks) or missing
        outcome: Outcome = "fails" if value > self.max + TOLERANCE else "unknown" if missing else "holds"
        return Verdict(self.asked, outcome, self.figure, value, 0, 0, missing if outcome == "unknown" else "")

    @property
    def figure(self) -> str:
        """The name of what is limited."""
        return self.model.replace("-", "_")

    @property
    def asked(self) -> str:
        """The limit in one line, for people."""
        return f"{self.model.replace('-', ' ')} at most {self.max:g}, measured"


class SinglingOutRisk(MeasuredLimit):
    """The share of people for whom exactly one record fits what others know of them."""

    model: Literal["singling-out-risk"] = "singling-out-risk"
    question: ClassVar[Question] = "singling out"

    def value(self, attacks: Attacks) -> float:
        """The share."""
        return _share(attacks, "singling out")


class LinkageRisk(MeasuredLimit):
    """How often a person is linked to their own record: by what others know, or by the order of the rows."""

    model: Literal["linkage-risk"] = "linkage-risk"
    question: ClassVar[Question] = "linkability"

    def value(self, attacks: Attacks) -> float:
        """The share of right links; of other attacks, what they find beyond chance."""
        others = [risk.above for risk in attacks if risk.question == "linkability" and risk.name != "identity linking"]
        return max([_share(attacks, "identity linking"), *others])  # NaN first: it stays, as nothing exceeds it


class InferenceRisk(MeasuredLimit):
    """How often a sensitive value is learned beyond what a guess without the release's classes gives."""

    model: Literal["inference-risk"] = "inference-risk"
    question: ClassVar[Question] = "inference"
    needs_sensitive: ClassVar[bool] = True

    def value(self, attacks: Attacks) -> float:
        """The most that an attack leaves above its control."""
        worst = attacks.worst("inference")
        return math.nan if worst is None else worst.above


def _share(attacks: Attacks, name: str) -> float:
    return attacks.named(name).share if any(risk.name == name for risk in attacks) else math.nan


Limit = Annotated[SinglingOutRisk | LinkageRisk | InferenceRisk, Field(discriminator="model")]
