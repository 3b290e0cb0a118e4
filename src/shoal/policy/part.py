"""The base of all parts of a policy."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenPart(BaseModel):
    """A part of a policy, which cannot be changed."""

    # hide_input: what a policy lists, the values of a tree, say, may be values of the data.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)
