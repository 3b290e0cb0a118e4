"""What a policy says about a column: its role, and how it may be generalized."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from shoal.hierarchies.builders import Spec
from shoal.policy.coarsening import Coarsening
from shoal.policy.part import FrozenPart
from shoal.tables.centres import CENTRES

Role = Literal["identifier", "quasi", "sensitive", "plain"]
Cell = Literal["hierarchy", "range", "set", "tight-range", "tight-set", "mean", "median", "mode"]

_QUASI_ONLY = {"min_level", "max_level", "only", "weight", "after", "cells"}


class Column(FrozenPart):
    """The role of a column and how it may be generalized."""

    role: Role = Field(
        description="`identifier`: identifies a person directly; it is removed. `quasi`: an outsider may know it; "
        "it is generalized, and it defines the classes. `sensitive`: must not be disclosed; it is kept and "
        "protected by the requirements on it. `plain`: kept unchanged and not protected."
    )
    hierarchy: Spec | None = Field(
        default=None,
        description="How a quasi-identifier may be generalized, or how similar the values of a sensitive column are to "
        "each other. The default for a quasi-identifier is `{ flat = true }`; other roles have none.",
    )
    uncovered: Literal["error", "suppress"] = Field(
        default="error",
        description="How to treat a value that is missing from the hierarchy: `error` rejects the table and "
        "reports the number of such values, `suppress` generalizes them to the top.",
    )
    missing: tuple[str, ...] | None = Field(
        default=None,
        strict=False,
        description="Texts that mean a missing value in this column, instead of those for the whole table "
        "(`missing` at the top level): `[]` if none does, for example if `NA` is a country code.",
    )
    decimal: Literal[".", ","] = Field(
        default=".",
        description="The decimal mark of its numbers; a CSV file is released with the same mark, everything else with "
        "points.",
    )
    thousands: Literal[".", ",", " ", "'"] | None = Field(
        default=None,
        description="The mark between groups of three digits in its numbers; they are released without it.",
    )
    min_level: int = Field(default=0, ge=0, description="The lowest level of the hierarchy that may be released.")
    max_level: int | None = Field(
        default=None, ge=0, description="The highest level that may be released; by default the top."
    )
    only: Literal["suppress"] | None = Field(
        default=None, description="Release the column unchanged or suppress it entirely, with no level in between."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        strict=False,
        description="The weight of its cells in losses that sum over cells.",
    )
    after: str | None = Field(
        default=None,
        description="Another quasi-identifier: this column is generalized only once that one is at its "
        "highest allowed level.",
    )
    cells: Cell = Field(
        default="hierarchy",
        description="What an algorithm that mixes levels in a column writes into a cell: `hierarchy`, the lowest label "
        "that covers the class; `range` or `set`, a range or a set of values that is fixed before classes are formed, "
        "so that it does not tell which of them occur; `tight-range`, from the lowest to the highest value of the "
        "class, in the order of the hierarchy; `tight-set`, the set of its values, each of which occurs; or a single "
        "value, their `mean`, `median` or `mode`.",
    )
    released: Coarsening | None = Field(
        default=None,
        description="What is released of a sensitive column, coarser than its values: `{ level = 1 }` of its "
        "hierarchy, or `{ round = 100, bottom = 0, top = 5000 }` of numbers.",
    )

    @model_validator(mode="after")
    def _hierarchy_has_a_use(self) -> Self:
        if self.hierarchy is not None and self.role in ("identifier", "plain"):
            raise ValueError(f"a column with role {self.role!r} is not generalized and takes no hierarchy")
        # By value, not by what was written: a certificate writes the defaults out, and is read back.
        settings = {name for name in _QUASI_ONLY if getattr(self, name) != type(self).model_fields[name].default}
        if self.role != "quasi" and settings:
            raise ValueError(f"only a column with role 'quasi' takes {', '.join(sorted(settings))}")
        if self.released is not None and self.role != "sensitive":
            raise ValueError("only a column with role 'sensitive' takes released")
        if self.released is not None and self.released.level is not None and self.hierarchy is None:
            raise ValueError("released: level needs a hierarchy")
        if self.only and settings & {"min_level", "max_level"}:
            raise ValueError(
                "only = 'suppress' leaves no choice of levels and cannot be combined with min_level or max_level"
            )
        if self.only and self.cells in CENTRES:
            raise ValueError(
                f"only = 'suppress' shows a value unchanged or not at all and cannot be combined with cells = "
                f"'{self.cells}'"
            )
        if self.max_level is not None and self.max_level < self.min_level:
            raise ValueError("max_level must be at least min_level")
        if self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same mark: numbers would be ambiguous")
        if self.thousands == "." and self.cells in ("mean", "median"):
            raise ValueError(
                f"cells = '{self.cells}' writes decimal points, which thousands = '.' would read as thousands marks"
            )
        check_missing(self.missing or ())
        return self


def check_missing(missing: Iterable[str]) -> None:
    """Reject texts that cannot stand for a missing value."""
    for text in missing:
        if text != text.strip():
            raise ValueError(
                "missing: surrounding spaces are ignored; write the text without them, and a blank text as ''"
            )
        if text and not text.strip("*"):
            raise ValueError("missing: '*' means a suppressed value")
