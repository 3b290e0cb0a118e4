"""Exceptions raised by shoal: what went wrong, where, how often, and a hint.

A message never contains a value from the data, because logs are shared more widely than tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class ShoalError(Exception):
    """Base class of all errors; ``hint`` says what the caller can do, in terms of Python and the command line.

    ``option`` is what only the command line adds: the flag or the command that the hint speaks of.

    >>> import pyarrow as pa, shoal
    >>> try:
    ...     shoal.anonymize(pa.table({"age": [31, 34]}), k=3, quasi=["age"])
    ... except shoal.ShoalError as error:
    ...     print(type(error).__name__, error.exit_code)
    InfeasibleError 1
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
        """Return the message with the command-line option that the hint refers to."""
        return f"{self} ({self.option})" if self.hint and self.option else str(self)


class PolicyError(ShoalError):
    """The policy contradicts itself or does not match the table."""


def no_column(
    where: str,
    absent: Sequence[str],
    columns: Iterable[str],
    hint: str | None = None,
    *,
    error: type[ShoalError] = PolicyError,
) -> ShoalError:
    """Return the error for names of columns that a table does not have, with the names that they may be meant for.

    ``where`` is what lacks them, such as "the table"; ``hint`` is used where no name is similar. Not all names are
    listed: in a file without a line of names they are the values of its first record.
    """
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in columns}
    close = [match for name in absent for match in get_close_matches(name.casefold(), folded, 1, 0.5)]
    if close:
        hint = f"did you mean {', '.join(repr(folded[match]) for match in dict.fromkeys(close))}?"
    return error(f"{where} has no column {', '.join(map(repr, absent))}", hint)


class HierarchyError(ShoalError):
    """A generalization hierarchy violates C1, C2 or its own description."""


class UncoveredValueError(HierarchyError):
    """Values of a column are missing from its hierarchy."""


class DataError(ShoalError):
    """The table cannot be read, or cannot be anonymized as it is."""


class EmptyTableError(DataError):
    """The table has no rows; ``columns`` is an Arrow table without rows, for callers to whom that is an answer."""

    def __init__(
        self,
        message: str,
        hint: str | None = "it contains no records to protect or release",
        *,
        columns: pa.Table = None,
    ) -> None:
        super().__init__(message, hint)
        self.columns = columns


class MissingValueError(DataError):
    """There are nulls although the policy forbids them."""


class OtherTableError(DataError, ValueError):
    """A recoding is applied to a table other than the one that was searched."""


class OutputError(ShoalError):
    """The release cannot be written to the requested place."""


def already_there(target: object) -> OutputError:
    """Return the error for an existing file: nothing is overwritten unless requested."""
    hint = "choose another name, or use force to overwrite it"
    return OutputError(f"{target} already exists and was not overwritten", hint, option="--force")


class PartyError(ShoalError):
    """A party of a joint computation is missing, slow, not who it should be, or disagrees.

    The message says whether anything may have been opened.
    """


class CiphertextError(ShoalError):
    """A key or an encrypted file is weak, damaged or of another pair of keys; nothing was decrypted."""


class InfeasibleError(ShoalError):
    """No release satisfies the policy."""

    exit_code = 1


class OutOfTimeError(ShoalError):
    """The time budget ended before a solution was found."""

    exit_code = 1


class CannotTellError(ShoalError):
    """Whether a requirement holds cannot be determined from the data given; nothing is released."""


class PublicationError(ShoalError):
    """The policy holds, but findings speak against publication, and strict was asked for; nothing was written."""

    exit_code = 3


class VerificationError(ShoalError):
    """Verification of the finished release found a requirement that does not hold; nothing was published."""

    exit_code = 1


class LimitExceededError(VerificationError):
    """An attack on the finished release succeeds more often than the policy tolerates; nothing was published."""


class UnreadableError(VerificationError):
    """The finished release could not be read back for verification; nothing was published."""

    exit_code = 2
