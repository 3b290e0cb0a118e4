"""The evaluator's part: compute on ciphertexts, with the public key only, and learn nothing but sizes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from shoal.errors import PolicyError
from shoal.results.he.computation import Computation, Item, LinearScore, NumberColumn, Packing
from shoal.results.he.container import damaged, read_container, write_container
from shoal.results.he.encrypt import EncryptedTable, packing_of
from shoal.results.he.keys import EncryptionKey, loaded_key
from shoal.results.he.parameters import PROBES, EncryptionParameters


@dataclass(frozen=True, eq=False)
class EncryptedResult:
    """A result that only the secret key opens, with what was computed."""

    key: str
    packing: Packing
    computation: Computation
    masked: bool
    parts: Sequence[bytes] = field(repr=False)  # totals, then the ciphertexts of each score

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the encrypted result to a file."""
        header = {
            "kind": "result",
            "key": self.key,
            "parameters": self.packing.parameters.as_dict(),
            "columns": [column.as_dict() for column in self.packing.columns.values()],
            "rows": list(self.packing.n_rows),
            "computation": self.computation.as_dict(),
            "masked": self.masked,
        }
        return write_container(path, header, self.parts, force=force)

    @classmethod
    def load(cls, path: str | Path) -> EncryptedResult:
        """Read an encrypted result; this needs no key."""
        header, parts = read_container(path, "result")
        with damaged(path):
            parameters = EncryptionParameters.read(header["parameters"])
            columns = {column.name: column for column in map(NumberColumn.read, header["columns"])}
            packing = Packing(parameters, columns, tuple(int(n) for n in header["rows"]))
            computation = Computation.read(header["computation"])
            masked = header["masked"] is True
            n_parts = len(computation.totals) + len(computation.scores) * packing.n_chunks
            if not packing.n_rows or min(packing.n_rows) < 1 or len(parts) != n_parts:
                raise ValueError
            if (computation.scores and len(packing.n_rows) > 1) or (masked and not parameters.exact):
                raise ValueError
            packing.require_columns(computation.needed)
            for item in (*computation.totals, *computation.scores):
                packing.require_room(item, masked=masked)
        return cls(str(header["key"]), packing, computation, masked, parts)


def compute(
    tables: EncryptedTable | str | Path | Sequence[EncryptedTable | str | Path],
    key: EncryptionKey | str | Path,
    *,
    sum: Sequence[str] = (),
    mean: Sequence[str] = (),
    score: Mapping[str, LinearScore | Mapping[str, Any]] | None = None,
    regression: Sequence[Sequence[str]] = (),
    mask: bool | None = None,
) -> EncryptedResult:
    """Compute on one or several encrypted tables with the public key; only the secret key opens the result.

    Parameters
    ----------
    tables
        Encrypted tables, or their files.
    key
        The public key, or its file.
    sum, mean
        The columns of numbers.
    score
        Weighted sums of columns for every row, by name: a ``LinearScore``, or its weights by column.
    regression
        Lists of columns with the target first, for least squares with an intercept.
    mask
        Whether all but the totals is hidden from the owner of the secret key; by default in the exact scheme.

    Returns
    -------
    EncryptedResult
        The encrypted result, to be saved or decrypted.

    Raises
    ------
    PolicyError
        If nothing is asked for, a column is absent, or a result could overflow.
    CiphertextError
        If a table belongs to other keys, or cannot be read.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from shoal import he
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     secret, public = he.make_key_pair(f"{folder}/hospital")
    ...     table = he.encrypt(pa.table({"age": [31, 34, 40]}), public, bounds={"age": (0, 120)})
    ...     he.decrypt(he.compute(table, public, sum=["age"]), secret).figures
    {'sum of age': 105}
    """
    public = loaded_key(key)
    operands = [tables] if isinstance(tables, EncryptedTable | str | Path) else list(tables)
    opened = [table if isinstance(table, EncryptedTable) else EncryptedTable.load(table) for table in operands]
    if not opened:
        raise PolicyError("no encrypted table is given")
    for table in opened:
        public.require_same(table.key, "an encrypted table")
    packing = packing_of(opened)
    requested = Computation(
        tuple(sum),
        tuple(mean),
        {
            name: formula if isinstance(formula, LinearScore) else LinearScore(formula)
            for name, formula in (score or {}).items()
        },
        tuple(tuple(names) for names in regression),
    )
    packing.require_columns(requested.needed)
    masked = public.parameters.exact if mask is None else mask
    if masked and not public.parameters.exact:
        raise PolicyError("results of the scheme ckks cannot be masked", "use keys of the scheme bfv")
    for item in (*requested.totals, *requested.scores):
        packing.require_room(item, masked=masked)
    if requested.scores:
        if len(opened) > 1:
            raise PolicyError("scores are computed for the rows of one table at a time")
        if not opened[0].ordered:
            raise PolicyError(
                "scores need rows in a known order, and those of a database have none",
                "let the owner encrypt a file or a frame",
            )
    parts = [_total(public, packing, opened, item, masked).serialize() for item in requested.totals]
    for item in requested.scores:
        parts += [vector.serialize() for vector in _scores(public, packing, opened[0], item)]
    return EncryptedResult(public.identity, packing, requested, masked, parts)


def _total(key: EncryptionKey, packing: Packing, tables: list[EncryptedTable], item: Item, masked: bool) -> Any:
    """Add up a column, or the products of two, over all chunks of all tables."""

    def chunks() -> Any:
        for table in tables:
            for i in range(packing.parameters.n_chunks(table.n_rows)):
                factors = [key.ciphertext(table.chunks[name][i]) for name in item.columns]
                yield factors[0] if len(factors) == 1 else factors[0] * factors[1]

    total = reduce(add, chunks())
    return total + key.encrypted(_mask(packing.parameters)) if masked else total


def _mask(parameters: EncryptionParameters) -> list[int]:
    """Return uniform numbers from a secure source that add up to 0 modulo the plain modulus; none for the probes."""
    modulus = parameters.plain_modulus
    drawn = [secrets.randbelow(modulus) for _ in range(parameters.rows - 1)]
    drawn.append(-_sum(drawn) % modulus)
    return [*(n - modulus if 2 * n > modulus else n for n in drawn), *[0] * PROBES]


def _sum(numbers: list[int]) -> int:
    return reduce(add, numbers, 0)


def _scores(key: EncryptionKey, packing: Packing, table: EncryptedTable, item: Item) -> Any:
    """Compute a score of every row, one chunk after the other."""
    if item.score is None:
        raise TypeError("a score is needed")
    exact = packing.parameters.exact
    whole, constant, _ = item.score.multiples(packing.columns)
    weights: dict[str, Any] = whole if exact else {name: float(w) for name, w in item.score.exact[0].items()}
    intercept: Any = constant if exact else float(item.score.exact[1])
    ones = None if not intercept else key.encrypted([1 if exact else 1.0] * packing.parameters.slots)
    for i in range(packing.parameters.n_chunks(table.n_rows)):
        terms = [key.ciphertext(table.chunks[name][i]) * weight for name, weight in weights.items()]
        yield reduce(add, terms if ones is None else [*terms, ones * intercept])
