"""Every exception that shoal raises: what, where, how many, and a hint.

A message never carries a value of the data: logs travel farther than tables.
"""

from __future__ import annotations


class ShoalError(Exception):
    """Base of all; ``hint`` says what the caller can do about it, in words that fit Python and the command line.

    ``option`` is what only the command line adds: the flag or the command that the hint speaks of.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None, *, option: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.option = option

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message

    @property
    def on_command_line(self) -> str:
        """The same with the option that is meant."""
        return f"{self} ({self.option})" if self.hint and self.option else str(self)


class PolicyError(ShoalError):
    """The policy contradicts itself, or does not fit the table."""


class HierarchyError(ShoalError):
    """A generalization hierarchy is not one: C1, C2, or its own description fails."""


class UncoveredValueError(HierarchyError):
    """Values of the data have no place in their column's hierarchy."""


class DataError(ShoalError):
    """The table cannot be read, or cannot be anonymized as it is."""


class MissingValueError(DataError):
    """Nulls where the policy forbids them."""


class OtherTableError(DataError, ValueError):
    """A recoding meets another table than the one that was searched."""


class OutputError(ShoalError):
    """The release cannot be written where it was asked for."""


def already_there(target: object) -> OutputError:
    """Nothing is overwritten unless that is asked for."""
    hint = "choose another name, or overwrite it with force"
    return OutputError(f"{target} exists and was not overwritten", hint, option="--force")


class InfeasibleError(ShoalError):
    """No release keeps the promise: not an accident, an answer."""

    exit_code = 1


class OutOfTimeError(ShoalError):
    """The time budget ended before any answer was found."""

    exit_code = 1


class CannotTellError(ShoalError):
    """Whether a requirement holds cannot be told from what is there; what cannot be told is not released."""


class VerificationError(ShoalError):
    """The finished release was counted again and a requirement does not hold; nothing was written."""

    exit_code = 1


class UnreadableError(VerificationError):
    """The finished release could not be counted again, so nothing can be told about it; nothing was written."""

    exit_code = 2
