"""Measured limits: a release is attacked, and written only if the attack's success stays within the limit.

The other models are conditions on classes, which a search can satisfy. The success of an attack is known only when the
release is finished. Searches therefore ignore limits, and a release that exceeds one is refused. The remedy is to
require more of the models and try again, which ``release.aim`` does (``policy.aiming``).
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
    """The success of attacks, with lower and upper bounds if it is not fully known."""

    low: float
    value: float
    high: float


class MeasuredLimit(BaseModel):
    """The largest tolerated success of an attack."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str
    max: float = Field(ge=0, le=1, strict=False)
    needs_sensitive: ClassVar[bool] = False
    question: ClassVar[Question]  # the question that the limit answers

    def reached(self, attacks: Attacks) -> Reached:
        """Return the success of the attacks; unknown if no relevant attack was run."""
        raise NotImplementedError

    def value(self, attacks: Attacks) -> float:
        """Return the measured success; NaN if no relevant attack was run."""
        return self.reached(attacks).value

    def judge(self, attacks: Attacks | None, missing: str = "") -> Verdict:
        """Judge whether the success of the attacks on a release stays within the limit; unknown without attacks.

        ``missing`` names information that the attacks on this table lacked, such as which record belongs to whom. A
        lower bound on their success still counts: if it exceeds the limit, the limit fails, whatever was missing.
        """
        if attacks is None:
            return Verdict(self.summary, "unknown", self.figure, math.nan, 0, 0, "needs the original")
        success = self.reached(attacks)
        if success.low > self.max + TOLERANCE:
            return Verdict(self.summary, "fails", self.figure, success.value, 0, 0)
        missing = missing or attacks.untold(self.question, self.max)
        if not missing and not success.high <= self.max + TOLERANCE:
            span = f"the attack reaches between {success.low:.3g} and {success.high:.3g}, which includes the limit"
            missing = "no attack was run" if math.isnan(success.value) else span
        return Verdict(self.summary, "unknown" if missing else "holds", self.figure, success.value, 0, 0, missing)

    @property
    def figure(self) -> str:
        """The name of the limited figure."""
        return self.model.replace("-", "_")

    @property
    def summary(self) -> str:
        """The limit as one readable line."""
        return f"{self.model.replace('-', ' ')} at most {self.max:g}, measured"


class SinglingOutRisk(MeasuredLimit):
    """The share of people for whom exactly one record matches what others know about them."""

    model: Literal["singling-out-risk"] = "singling-out-risk"
    question: ClassVar[Question] = "singling out"

    def reached(self, attacks: Attacks) -> Reached:
        """Return the share of people singled out."""
        return _worst([_share(risk) for risk in attacks if risk.name == "singling out"])


class LinkageRisk(MeasuredLimit):
    """How often a person is linked to their own record, by what others know or by the order of the rows."""

    model: Literal["linkage-risk"] = "linkage-risk"
    question: ClassVar[Question] = "linkability"

    def reached(self, attacks: Attacks) -> Reached:
        """Return the share of correct links; for other attacks, their success beyond chance."""
        linked = [risk for risk in attacks if risk.question == "linkability"]
        if not any(risk.name == "identity linking" for risk in linked):
            return _worst([])
        return _worst([_share(risk) if risk.name == "identity linking" else _above(risk) for risk in linked])


class InferenceRisk(MeasuredLimit):
    """How often a sensitive value is learned, beyond the success of guessing without the release's classes."""

    model: Literal["inference-risk"] = "inference-risk"
    question: ClassVar[Question] = "inference"
    needs_sensitive: ClassVar[bool] = True

    def reached(self, attacks: Attacks) -> Reached:
        """Return the largest success of an attack above its control."""
        return _worst([_above(risk) for risk in attacks.able("inference")])


class DowncodingRisk(MeasuredLimit):
    """The share of generalized records whose whole original tuple follows from the released texts and the algorithm."""

    model: Literal["downcoding-risk"] = "downcoding-risk"
    question: ClassVar[Question] = "singling out"

    def reached(self, attacks: Attacks) -> Reached:
        """Return the share of records that are given back."""
        return _worst([_share(risk) for risk in attacks if risk.name == "downcoding"])


class PredicateRisk(MeasuredLimit):
    """How often a predicate made from a release singles one person out, beyond its success on people outside of it."""

    model: Literal["predicate-risk"] = "predicate-risk"
    question: ClassVar[Question] = "singling out"

    def reached(self, attacks: Attacks) -> Reached:
        """Return the success above the control, which is a sample: it fails where the whole interval is above."""
        measured = [risk for risk in attacks if risk.name == "predicate singling out"]
        return _worst([Reached(risk.above_interval[0], risk.above, risk.above) for risk in measured])


def _share(risk: Risk) -> Reached:
    return Reached(risk.range[0], risk.share, risk.range[1])


def _above(risk: Risk) -> Reached:
    return Reached(risk.above_range[0], risk.above, risk.above_range[1])


def _worst(successes: Sequence[Reached]) -> Reached:
    """Return the success of the strongest attack."""
    if not successes:
        return Reached(0.0, math.nan, math.inf)
    return Reached(*(max(figures) for figures in zip(*successes, strict=True)))


Limit = Annotated[
    SinglingOutRisk | LinkageRisk | InferenceRisk | DowncodingRisk | PredicateRisk, Field(discriminator="model")
]
