"""Measured limits: a release is attacked, and only written if the attack stays below.

The models beside are conditions that a search can aim at, class by class. A limit is none: what an attack finds is
known when the release is finished. So searches do not see limits, and a release that exceeds one is refused; ask the
models for more, and try again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from shoal.models.base import TOLERANCE
from shoal.models.verdict import Verdict

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks, Question, Risk


class Reached(NamedTuple):
    """What attacks reached, and at least and at most where they do not know everything."""

    least: float
    value: float
    most: float


class MeasuredLimit(BaseModel):
    """The greatest success of an attack that is tolerated."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str
    max: float = Field(ge=0, le=1, strict=False)
    needs_sensitive: ClassVar[bool] = False
    question: ClassVar[Question]  # that the limit answers

    def reached(self, attacks: Attacks) -> Reached:
        """What the attacks reached; nothing is known of it where none that could tell was run."""
        raise NotImplementedError

    def value(self, attacks: Attacks) -> float:
        """What the attacks measured; NaN where none that could tell was run."""
        return self.reached(attacks).value

    def judge(self, attacks: Attacks | None, missing: str = "") -> Verdict:
        """Whether what the attacks on a release reached stays within the limit; unknown without attacks.

        ``missing`` is what the attacks on this table could not know, such as whose the records are. What they reached
        at the least they have reached all the same: above the limit it fails, whatever was missing.
        """
        if attacks is None:
            return Verdict(self.asked, "unknown", self.figure, math.nan, 0, 0, "needs the original")
        found = self.reached(attacks)
        if found.least > self.max + TOLERANCE:
            return Verdict(self.asked, "fails", self.figure, found.value, 0, 0)
        missing = missing or attacks.untold(self.question, self.max)
        if not missing and not found.most <= self.max + TOLERANCE:
            missing = "what the attacks could not determine is decisive" if attacks.risks else "no attack was run"
        return Verdict(self.asked, "unknown" if missing else "holds", self.figure, found.value, 0, 0, missing)

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

    def reached(self, attacks: Attacks) -> Reached:
        """The share of people singled out."""
        return _worst([_share(risk) for risk in attacks if risk.name == "singling out"])


class LinkageRisk(MeasuredLimit):
    """How often a person is linked to their own record: by what others know, or by the order of the rows."""

    model: Literal["linkage-risk"] = "linkage-risk"
    question: ClassVar[Question] = "linkability"

    def reached(self, attacks: Attacks) -> Reached:
        """The share of right links; of other attacks, what they find beyond chance."""
        linked = [risk for risk in attacks if risk.question == "linkability"]
        if not any(risk.name == "identity linking" for risk in linked):
            return _worst([])
        return _worst([_share(risk) if risk.name == "identity linking" else _above(risk) for risk in linked])


class InferenceRisk(MeasuredLimit):
    """How often a sensitive value is learned beyond what a guess without the release's classes gives."""

    model: Literal["inference-risk"] = "inference-risk"
    question: ClassVar[Question] = "inference"
    needs_sensitive: ClassVar[bool] = True

    def reached(self, attacks: Attacks) -> Reached:
        """The most that an attack leaves above its control."""
        return _worst([_above(risk) for risk in attacks.able("inference")])


def _share(risk: Risk) -> Reached:
    return Reached(risk.range[0], risk.share, risk.range[1])


def _above(risk: Risk) -> Reached:
    return Reached(risk.above_range[0], risk.above, risk.above_range[1])


def _worst(found: Sequence[Reached]) -> Reached:
    """Of several attacks the one that does most counts, whichever it is."""
    if not found:
        return Reached(0.0, math.nan, math.inf)
    return Reached(*(max(figures) for figures in zip(*found, strict=True)))


Limit = Annotated[SinglingOutRisk | LinkageRisk | InferenceRisk, Field(discriminator="model")]
