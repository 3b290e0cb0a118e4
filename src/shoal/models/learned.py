"""Forbidden results of learning: the accuracy of a classifier, and the sign of a coefficient.

**Accuracy.** No classifier that sees only the released cells of some columns is right more often, on the released
records, than the one that knows the most frequent value of every combination of these cells. Its accuracy is therefore
an upper bound for all kinds of classifiers, and it is reached: a lookup table reaches it.

**Sign.** The coefficient of a least-squares regression with an intercept has the sign of xᵀMy, where M takes out what
the other columns explain (R. Frisch, F. Waugh, "Partial time regressions as compared with individual trends",
Econometrica 1(4), 1933). For cells that are ranges x = x₀ ± r and y = y₀ ± s, it differs from x₀ᵀMy₀ by at most
|My₀|ᵀr + |Mx₀|ᵀs + ‖r‖ ‖s‖, because M is a projection; that is exact where only one of the two has ranges.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shoal.models.forbidden import ForbiddenCount, ForbiddenResult, ForbiddenRule, Minable, Mining
from shoal.tables.frequency import Floats
from shoal.text.figures import format_count

NEAR_ZERO = 1e-9  # a correlation that rounding alone may have given its sign


class ForbiddenClassifier(ForbiddenResult):
    """No classifier may be this accurate, or more, when it predicts ``column`` of the released records from ``on``."""

    result: Literal["classifier"] = "classifier"
    column: str = Field(description="The column that is predicted.")
    on: tuple[str, ...] = Field(strict=False, min_length=1, description="The columns that it is predicted from.")
    accuracy: float = Field(
        gt=0, le=1, strict=False, description="The share of right predictions at which the classifier comes out."
    )
    figure: ClassVar[str] = "accuracy"

    @model_validator(mode="after")
    def _predicts_another(self) -> Self:
        if self.column in self.on or len(set(self.on)) < len(self.on):
            raise ValueError("on: name other columns than column, each once")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are used, then the one that is predicted."""
        return (*self.on, self.column)

    @property
    def summary(self) -> str:
        """The prohibition as one readable line."""
        return f"no classifier of {self.column} from {', '.join(self.on)} with accuracy of at least {self.accuracy:g}"

    def unread(self, mined: Minable) -> str:
        """Return nothing: a text that cannot be read is a label like any other."""
        return ""

    def mining(self, mined: Minable) -> Mining:
        """Return whether the best classifier reaches the accuracy.

        Records whose own value is open are dropped, or a coarse value is a value of its own; filled in, each may be
        what is predicted.
        """
        features = np.column_stack([mined.labels(name).codes for name in self.on])
        group_of = np.unique(features, axis=0, return_inverse=True)[1].ravel()
        target = mined.labels(self.column)
        certain = ~(target.silent | target.coarse)
        guesses_of = [
            _right(group_of, target.codes, mined.counts, is_counted) for is_counted in (~target.silent, certain)
        ]
        n_open = int(mined.counts[~certain].sum())
        filled = RightGuesses(guesses_of[1].right + n_open, guesses_of[1].records + n_open)
        best = max(guesses_of, key=lambda guesses: guesses.accuracy)
        return Mining(
            any(map(self.comes_out, guesses_of)),
            self.comes_out(filled),
            best.accuracy,
            f"{format_count(n_open, 'record')} may have any value of {self.column!r}",
        )

    def comes_out(self, guesses: RightGuesses) -> bool:
        """Return whether an accuracy is forbidden; exact, as the limit is a decimal number."""
        return guesses.records > 0 and guesses.right >= Fraction(str(self.accuracy)) * guesses.records


class RightGuesses(NamedTuple):
    """How many of some records a classifier predicts."""

    right: int
    records: int

    @property
    def accuracy(self) -> float:
        """The share of right predictions; 0 without records."""
        return self.right / self.records if self.records else 0.0


def _right(
    group_of: NDArray[np.int64], codes: NDArray[np.int64], counts: NDArray[np.int64], is_counted: NDArray[np.bool_]
) -> RightGuesses:
    """Count the records that have the most frequent value of their group, among those that are kept."""
    if not is_counted.any():
        return RightGuesses(0, 0)
    pairs, pair_of = np.unique(np.column_stack([group_of, codes])[is_counted], axis=0, return_inverse=True)
    n = np.zeros(len(pairs), np.int64)
    np.add.at(n, pair_of.ravel(), counts[is_counted])
    right_of_group = np.zeros(int(pairs[:, 0].max()) + 1, np.int64)
    np.maximum.at(right_of_group, pairs[:, 0], n)
    return RightGuesses(int(right_of_group.sum()), int(counts[is_counted].sum()))


class ForbiddenSign(ForbiddenResult):
    """The coefficient of ``of`` must not have this sign in a linear regression that explains ``column``."""

    result: Literal["sign"] = "sign"
    column: str = Field(description="The column of numbers that is explained.")
    of: str = Field(description="The column of numbers whose coefficient it is.")
    given: tuple[str, ...] = Field(
        default=(), strict=False, description="Other columns of the regression: numbers, or categories."
    )
    sign: Literal["positive", "negative"] = Field(description="The forbidden sign.")
    figure: ClassVar[str] = "coefficient"

    @model_validator(mode="after")
    def _without_repetition(self) -> Self:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("column, of and given name a column twice")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The explaining columns, then the explained one."""
        return (self.of, *self.given, self.column)

    @property
    def summary(self) -> str:
        """The prohibition as one readable line."""
        given_words = f", given {', '.join(self.given)}" if self.given else ""
        return f"no {self.sign} coefficient of {self.of} in a regression of {self.column}{given_words}"

    def unread(self, mined: Minable) -> str:
        """Return which cells are neither numbers nor ranges."""
        for name in (self.of, self.column):
            if n := int(mined.counts[np.isnan(mined.numbers(name)).any(axis=1)].sum()):
                return f"column {name!r}: {n} cells are neither numbers nor ranges"
        return ""

    def mining(self, mined: Minable) -> Mining:
        """Return whether the sign comes out of the exact records or of midpoints, or of other numbers in the ranges."""
        x, y = mined.numbers(self.of), mined.numbers(self.column)
        design, readable_cells = _explaining(mined, self.given)
        bounded = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
        exact = bounded & (x[:, 0] == x[:, 1]) & (y[:, 0] == y[:, 1]) & readable_cells.exact
        signed = 1.0 if self.sign == "positive" else -1.0
        fits = [
            _Partial.fitted(x, y, design, mined.counts, is_counted)
            for is_counted in (bounded & readable_cells.readable, exact)
        ]
        comes_out = any(signed * fit.product > NEAR_ZERO * fit.scale for fit in fits)
        n_open = int(mined.counts[~exact].sum())
        # The other columns decide what M is: if one of their cells is open, so is every product.
        possible = not bounded.all() or not readable_cells.exact.all()
        whole = fits[0]
        possible |= signed * whole.product + whole.reach > -NEAR_ZERO * whole.scale and whole.varies
        words = f"{format_count(n_open, 'record')} have ranges or stars" if n_open else "it is zero but for rounding"
        return Mining(comes_out, comes_out or possible, whole.coefficient, words)


class _Readable(NamedTuple):
    """Which records have one value in each of the other columns, or at least a readable text."""

    exact: NDArray[np.bool_]
    readable: NDArray[np.bool_]


def _explaining(mined: Minable, names: tuple[str, ...]) -> tuple[Floats, _Readable]:
    """Return a column of ones and the other columns of a regression: midpoints, or an indicator per text."""
    n = len(mined.counts)
    blocks, exact, readable = [np.ones((n, 1))], np.ones(n, np.bool_), np.ones(n, np.bool_)
    for name in names:
        numbers, labels = mined.numbers(name), mined.labels(name)
        if np.isnan(numbers).any():
            exact &= ~(labels.silent | labels.coarse)
            readable &= ~labels.silent
            blocks.append((labels.codes.reshape(-1, 1) == np.unique(labels.codes)).astype(np.float64))
            continue
        bounded = np.asarray(np.isfinite(numbers).all(axis=1))
        exact &= bounded & (numbers[:, 0] == numbers[:, 1])
        readable &= bounded
        blocks.append(np.where(bounded[:, None], numbers, 0.0).mean(axis=1, keepdims=True))
    return np.column_stack(blocks), _Readable(exact, readable)


class _Partial(NamedTuple):
    """The product xᵀMy at the midpoints of the ranges, and how far other numbers in them may move it."""

    product: float
    reach: float
    scale: float  # what the product would be with a correlation of 1
    coefficient: float  # NaN if ``of`` does not vary beside the other columns
    varies: bool  # whether some numbers in the ranges give a coefficient other than 0

    @classmethod
    def fitted(
        cls, x: Floats, y: Floats, regressors: Floats, counts: NDArray[np.int64], is_counted: NDArray[np.bool_]
    ) -> _Partial:
        if not is_counted.any():
            return cls(0.0, 0.0, 0.0, math.nan, False)
        root = np.sqrt(counts[is_counted].astype(np.float64))
        design = regressors[is_counted] * root[:, None]
        basis, sizes, _ = np.linalg.svd(design, full_matrices=False)
        basis = basis[:, sizes > sizes.max(initial=0) * 1e-10]
        middle = [numbers[is_counted].mean(axis=1) for numbers in (x, y)]
        radius = [(numbers[is_counted][:, 1] - numbers[is_counted][:, 0]) / 2 for numbers in (x, y)]
        left = [part - basis @ (basis.T @ part) for part in (root * middle[0], root * middle[1])]
        norms = [float(np.linalg.norm(part)) for part in left]
        # Rounding leaves a residual of a constant: it is none.
        is_constant = [
            norm <= 1e-10 * (1 + float(np.linalg.norm(root * m))) for norm, m in zip(norms, middle, strict=True)
        ]
        norms = [0.0 if zero else norm for norm, zero in zip(norms, is_constant, strict=True)]
        product = 0.0 if any(is_constant) else float(left[0] @ left[1])
        spread = [float(np.linalg.norm(root * width)) for width in radius]
        reach = float(np.abs(left[1]) @ (root * radius[0]) + np.abs(left[0]) @ (root * radius[1]))
        reach += spread[0] * spread[1]
        return cls(
            product,
            reach,
            norms[0] * norms[1],
            product / norms[0] ** 2 if norms[0] else math.nan,
            all(norm > 0 or wide > 0 for norm, wide in zip(norms, spread, strict=True)),
        )


Forbidden = Annotated[
    ForbiddenCount | ForbiddenRule | ForbiddenClassifier | ForbiddenSign, Field(discriminator="result")
]
