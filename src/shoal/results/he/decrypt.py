"""At home: decrypt a result with the secret key, check its probes, and say how exact it is."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from shoal.errors import CiphertextError, DataError
from shoal.results.he.computation import Item
from shoal.results.he.compute import EncryptedResult
from shoal.results.he.keys import EncryptionKey, loaded_key
from shoal.results.he.parameters import PROBES

FEW_ROWS = 10  # rows; figures about fewer come with a warning
UNVERIFIED = (
    "The figures are unverified: known values in the ciphertexts came out right, but whoever computed them could have "
    "computed something else."
)
EXACT = "The encryption adds no error to them."
APPROXIMATE = (
    "The encryption makes them approximate; they are rounded to where their error allows. Never give them to whoever "
    "computed them: an approximate decryption helps to recover the secret key (Li and Micciancio, 2021)."
)


@dataclass(frozen=True)
class DecryptedResult:
    """The figures, a bound on the error of each, and the largest error that was found in probes."""

    figures: Mapping[str, Any]
    errors: Mapping[str, Any]
    measured: float
    n_rows: int
    notes: tuple[str, ...]
    scores: pa.Table | None = field(default=None, repr=False)

    def scores_as_csv(self) -> bytes:
        """Return the scores as a CSV file, in the order of the rows."""
        sink = io.BytesIO()
        csv.write_csv(self.scores, sink)
        return sink.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON represents it."""
        return {
            "verified": False,
            "result": dict(self.figures),
            "error": dict(self.errors),
            "measured_error": self.measured,
            "rows": self.n_rows,
            "notes": list(self.notes),
            **({} if self.scores is None else {"scores": self.scores.to_pydict()}),
        }


def decrypt(
    result: EncryptedResult | str | Path, key: EncryptionKey | str | Path, *, password: str | None = None
) -> DecryptedResult:
    """Open a result with the secret key, or raise an error and show nothing if its probes are wrong.

    Parameters
    ----------
    result
        The encrypted result, or its file.
    key
        The secret key, or its file.
    password
        The password of the file of the secret key, if it has one.

    Returns
    -------
    DecryptedResult
        The figures, which are unverified, with the errors of the scheme and notes on both.

    Raises
    ------
    CiphertextError
        If the result belongs to other keys, or its known values did not come out right.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from shoal import he
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     secret, public = he.make_key_pair(f"{folder}/hospital", password="a long sentence")
    ...     table = he.encrypt(pa.table({"age": [31, 34, 40]}), public, bounds={"age": (0, 120)})
    ...     he.decrypt(he.compute(table, public, sum=["age"]), secret, password="a long sentence").figures
    {'sum of age': 105}
    """
    secret = loaded_key(key, secret=True, password=password)
    opened = result if isinstance(result, EncryptedResult) else EncryptedResult.load(result)
    secret.require_same(opened.key, "the result")
    if opened.packing.parameters != secret.parameters:
        raise CiphertextError(
            "the result was computed with other parameters", "use the keys that it was encrypted with"
        )
    return _Opening(opened, secret).read()


class _Opening:
    """One decryption: totals are decrypted once and used by every figure that needs them."""

    def __init__(self, result: EncryptedResult, key: EncryptionKey) -> None:
        self.result, self.key, self.packing = result, key, result.packing
        self.exact = key.parameters.exact
        self.measured = 0.0
        self.figures: dict[str, Any] = {}
        self.errors: dict[str, Any] = {}

    def read(self) -> DecryptedResult:
        computation, n_rows = self.result.computation, sum(self.packing.n_rows)
        self.totals: dict[tuple[str, ...], Fraction] = {}
        self.bounds: dict[tuple[str, ...], float] = {}
        for item, part in zip(computation.totals, self.result.parts, strict=False):
            self.totals[tuple(sorted(item.columns))] = self._total(item, part)
            self.bounds[tuple(sorted(item.columns))] = 0.0 if self.exact else self.packing.total_error(item)
        scores = self._scores()  # all ciphertexts are checked before a figure is told
        for name in computation.sum:
            self._report(f"sum of {name}", self._total_of(name), self._error(name))
        for name in computation.mean:
            self._report(f"mean of {name}", self._total_of(name) / n_rows, self._error(name) / n_rows)
        for names in computation.regression:
            self._regression(names, n_rows)
        notes = [UNVERIFIED, EXACT if self.exact else APPROXIMATE]
        if computation.totals and not self.result.masked:
            notes.append("The owner of the secret key could also read sums over a few rows, which are not masked.")
        if computation.totals and n_rows < FEW_ROWS:
            notes.append(f"The figures are about {n_rows} rows only, and can reveal a person.")
        return DecryptedResult(self.figures, self.errors, self.measured, n_rows, tuple(notes), scores)

    def _total_of(self, *names: str) -> Fraction:
        return self.totals[tuple(sorted(names))]

    def _error(self, *names: str) -> float:
        return self.bounds[tuple(sorted(names))]

    def _report(self, label: str, value: Fraction, error: float) -> None:
        self.figures[label], self.errors[label] = self._rounded(value, error)

    def _rounded(self, value: Fraction, error: float) -> tuple[int | float, float]:
        """Return a figure without digits that are noise, and the error with that of rounding."""
        if self.exact:
            return int(value) if value.denominator == 1 else float(value), 0.0
        digits = math.floor(-math.log10(error))
        return float(round(value, digits)), error + 0.5 * 10.0**-digits

    # ── slots ────────────────────────────────────────────────────────────────────────────────────────────────

    def _slots(self, item: Item, part: bytes) -> list[Any]:
        """Decrypt a ciphertext, and return the slots of rows if the probes are right."""
        vector = self.key.ciphertext(part)
        try:
            slots = vector.decrypt()
        except (ValueError, RuntimeError):
            raise CiphertextError("the result cannot be decrypted with this key") from None
        expected = self.packing.probes(item)
        probes = slots[-PROBES:]
        if self.exact:
            fine = [Fraction(n) for n in probes] == expected
        else:
            errors = [abs(n - float(exact)) for n, exact in zip(probes, expected, strict=True)]
            fine = all(math.isfinite(error) and error <= self.packing.slot_error(item) for error in errors)
            self.measured = max(self.measured, *errors)
        if not fine:
            raise CiphertextError(
                "known values in the ciphertext did not come out right, so nothing is shown",
                "it was encrypted with another key or other bounds, computed otherwise than it says, or damaged",
            )
        return list(slots[:-PROBES])

    def _total(self, item: Item, part: bytes) -> Fraction:
        slots = self._slots(item, part)
        if not self.exact:
            row_slots = slots[: max(self.packing.n_rows)]
            return Fraction(math.fsum(row_slots))
        total = sum(slots)
        if self.result.masked:
            modulus = self.key.parameters.plain_modulus
            total %= modulus
            total -= modulus if 2 * total > modulus else 0
        return Fraction(total, math.prod(self.packing.columns[name].scale for name in item.columns))

    def _scores(self) -> pa.Table | None:
        computation, n = self.result.computation, self.packing.n_chunks
        if not computation.scores:
            return None
        columns = {}
        start = len(computation.totals)
        for item in computation.scores:
            parts = self.result.parts[start : start + n]
            start += n
            slots = [slot for part in parts for slot in self._slots(item, part)][: self.packing.n_rows[0]]
            if item.score is None:
                raise TypeError("a score is needed")
            if self.exact:
                denominator = item.score.multiples(self.packing.columns)[2]
                columns[item.label] = pa.array(slots if denominator == 1 else [n / denominator for n in slots])
                self.errors[item.label] = 0.0
            else:
                error = self.packing.slot_error(item)
                rounded = [self._rounded(Fraction(slot), error) for slot in slots]
                columns[item.label] = pa.array([value for value, _ in rounded])
                self.errors[item.label] = rounded[0][1]
        return pa.table(columns)

    # ── regression ───────────────────────────────────────────────────────────────────────────────────────────

    def _regression(self, names: tuple[str, ...], n_rows: int) -> None:
        """Solve the normal equations: exactly in BFV, in floating-point numbers in CKKS."""
        target, *predictors = names
        k = len(predictors) + 1
        pairs = [[(*a, *b) for b in ([], *([x] for x in predictors))] for a in ([], *([x] for x in predictors))]
        right = [(target, *a) for a in ([], *([x] for x in predictors))]

        def value(pair: tuple[str, ...]) -> Fraction:
            return self._total_of(*pair) if pair else Fraction(n_rows)

        matrix = [
            [value(pair) for pair in row] + [value(right_pair)] for row, right_pair in zip(pairs, right, strict=True)
        ]
        solved = solution(matrix)
        doubt = [0.0] * k
        if not self.exact:
            wrong = np.array([[self._error(*pair) if pair else 0.0 for pair in row] for row in pairs])
            aside = np.array([self._error(*right_pair) for right_pair in right])
            inverse = np.abs(np.linalg.inv(np.array([[float(x) for x in row[:-1]] for row in matrix])))
            size = np.abs(np.array([float(x) for x in solved]))
            spread = float(np.abs(inverse @ wrong).sum(axis=1).max())
            if not spread < 0.5:
                raise DataError(
                    f"the regression of {target!r} cannot be told from the error of the encryption",
                    "use keys of the scheme bfv, or narrower bounds",
                )
            doubt = (inverse @ (wrong @ size + aside) / (1 - spread)).tolist()
        right_pair = [self._rounded(x, error) for x, error in zip(solved, doubt, strict=True)]
        label = f"regression of {target}"
        terms = ["intercept", *predictors]
        self.figures[label] = {term: value for term, (value, _) in zip(terms, right_pair, strict=True)}
        self.errors[label] = {term: error for term, (_, error) in zip(terms, right_pair, strict=True)}


def solution(matrix: list[list[Fraction]]) -> list[Fraction]:
    """Solve linear equations exactly; the last column is the right side."""
    rows = [list(row) for row in matrix]
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            raise DataError("the columns of the regression depend on each other, or there are too few rows")
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i]:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]
