"""What all descriptions of hierarchies have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


def require_ascending(units: Sequence[str], ordered_units: Iterable[str]) -> None:
    """Raise ValueError unless there are units, all among ``ordered_units`` and in their order."""
    if not units or list(units) != [unit for unit in ordered_units if unit in units]:
        raise ValueError(f"must be one or more of {in_a_row(ordered_units)}, in this order")


def in_a_row(names: Iterable[str]) -> str:
    """Join names for a message."""
    return ", ".join(names)


class Description(BaseModel):
    """A hierarchy as described in a policy; ``build`` builds it for the values of a column."""

    # hide_input: an error must not quote its input, which may be a value from the data.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and (unknown := [key for key in value if key not in cls.model_fields]):
            raise ValueError(f"unknown key: {in_a_row(unknown)}; allowed are {in_a_row(cls.model_fields)}")
        return value
