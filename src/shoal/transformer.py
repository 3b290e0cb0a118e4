"""A scikit-learn transformer: ``fit`` learns a recoding, ``transform`` replays it on rows with the same columns.

The number of rows never changes, because estimators pair rows with labels. A row that cannot be released is therefore
not dropped: all its cells are missing, and only its position is visible. Every call of ``transform`` is judged by
itself, like a release: each class must satisfy the policy among the rows of the call.

Needs scikit-learn: ``pip install 'shoal[learn]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import frames
from shoal.errors import InfeasibleError, PolicyError
from shoal.inspection.inspect import policy_for
from shoal.inspection.roles import CROWD
from shoal.notation.forms import read_range
from shoal.notation.numbers import parse_number
from shoal.pipeline import anonymize
from shoal.policy import Policy, PolicySource, policy_of
from shoal.release.replay import described, replay
from shoal.text.log import log

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data
except ImportError:
    raise ImportError(
        "shoal.Anonymizer needs scikit-learn 1.6 or later: python -m pip install 'shoal[learn]'"
    ) from None


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn how to recode a table so that it satisfies a policy, and recode new rows alike; for scikit-learn pipelines.

    ``policy`` is a Policy, a path or a dict. Without one, ``k`` (default 5) must hold over the ``quasi`` columns
    (default: all but the ``sensitive`` ones), with one level per column, so that values that ``fit`` has not seen can
    be recoded. Columns without names, as in an array, are called x0, x1, …

    Rows keep their number and order. A row that must be held back (a value that cannot be recoded, a tuple that was
    suppressed, a class that would fail among the rows of the call) has only missing values. Identifiers are removed
    from the output. ``ranges="middle"`` converts released numeric columns to numbers: a range to its middle, ``*`` to a
    missing value; ``"label"`` keeps the texts of a release.

    The output satisfies the policy, but its rows are in the order of the input: to publish a table, use
    ``shoal.anonymize``, which shuffles the rows, verifies the written file and certifies it. A fitted transformer
    contains values from the data in ``recoding_``: do not publish it either.
    """

    def __init__(
        self,
        policy: PolicySource | None = None,
        *,
        k: int | None = None,
        quasi: Sequence[str] | None = None,
        sensitive: Sequence[str] | None = None,
        ranges: str = "middle",
    ) -> None:
        self.policy = policy
        self.k = k
        self.quasi = quasi
        self.sensitive = sensitive
        self.ranges = ranges

    def fit(self, X: Any, y: Any = None) -> Anonymizer:
        """Learn the recoding; ``y`` is ignored. Raises InfeasibleError if no release satisfies the policy."""
        if self.ranges not in ("middle", "label"):
            raise PolicyError(f"ranges: unknown option {self.ranges!r}", "choose 'middle' or 'label'")
        min_rows = 1 if self.policy is not None else CROWD if self.k is None else max(self.k, 1)
        table = self._table(X, reset=True, min_rows=min_rows)
        policy = self._policy_for(table)
        # Rows keep their order, and exactly the rows that are judged must be returned.
        policy = policy.model_copy(update={"release": policy.release.model_copy(update={"shuffle": False})})
        release = anonymize(table, policy)
        self.policy_ = policy
        self.recoding_ = described(release)
        self.levels_ = release.levels
        self.loss_ = dict(release.loss)
        self._numbers = tuple(
            field.name for field in table.schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        )
        return self

    def transform(self, X: Any) -> Any:
        """Return the recoded rows, as a frame if one was given, else as an array; held-back rows are missing."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        names = [name for name in table.column_names if name not in self.policy_.identifiers]
        try:
            replayed = replay(self.recoding_, table, folder=self.policy_.folder)
            released, sources = replayed.rows.table, replayed.rows.sources  # type: ignore[union-attr]
        except InfeasibleError:  # every row is held back
            released, sources = table.select(names).slice(0, 0), np.zeros(0, np.int64)
        if held_back := len(table) - len(released):
            log.warning("transform: %d of %d rows are held back and returned as missing", held_back, len(table))
        position_of = np.full(len(table), -1, np.int64)
        position_of[sources] = np.arange(len(released))
        aligned = released.take(pa.array(position_of, mask=position_of < 0))
        columns = {
            name: _middles(aligned[name]) if self.ranges == "middle" and name in self._numbers else aligned[name]
            for name in names
        }
        return _given_back(pa.table(columns), X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the columns of the output: all but identifiers."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([name for name in names if name not in self.policy_.identifiers], dtype=object)

    def _policy_for(self, table: pa.Table) -> Policy:
        if self.policy is not None:
            if self.k is not None or self.quasi is not None or self.sensitive is not None:
                raise PolicyError("pass either a policy or k, quasi and sensitive, not both")
            return policy_of(self.policy)
        sensitive = self.sensitive or ()
        quasi = [name for name in table.column_names if name not in sensitive] if self.quasi is None else self.quasi
        k = CROWD if self.k is None else self.k
        # One level per column, since rows that are transformed later may have other tuples.
        proposed, _ = policy_for(table, k=k, quasi=quasi, sensitive=sensitive, purpose="tables")
        return proposed.with_release(algorithm="optimal", max_suppression=0.05, time_budget=20)

    def _table(self, X: Any, *, reset: bool, min_rows: int = 1) -> pa.Table:
        """Return the rows, checked as scikit-learn does; unnamed columns get the names that it would give them."""
        checked = validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=min_rows
        )
        names = list(X.columns) if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns) else None
        if reset:
            self._named = names is not None
            self._names = names or [f"x{j}" for j in range(checked.shape[1])]
        elif self._named and names is not None and names != self._names:  # not every scikit-learn supports every frame
            raise ValueError("the columns must be the same as in fit, in the same order")
        if names is not None:
            return frames.to_arrow(_without_index(X))[0].rename_columns(self._names)
        return pa.table({name: _column(checked[:, j]) for j, name in enumerate(self._names)})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value is a separate value
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _column(values: NDArray[Any]) -> pa.Array:
    """Return a column of an array; objects of mixed types become texts."""
    if values.dtype != object:
        return frames.with_plain_types(pa.table({"x": pa.array(values, from_pandas=True)}))["x"]
    plain_values = [None if value is None or value != value else value for value in values.tolist()]
    try:
        return frames.with_plain_types(pa.table({"x": pa.array(plain_values)}))["x"]
    except (pa.ArrowException, TypeError):
        return pa.array([None if value is None else str(value) for value in plain_values], pa.string())


def _middles(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a recoded column of numbers back to numbers; cells without a number are missing."""
    if not pa.types.is_string(column.type):
        return column.cast(pa.float64())
    encoded = column.combine_chunks().dictionary_encode()
    middles = pa.array([_middle(text) for text in encoded.dictionary.to_pylist()], pa.float64())
    return pa.chunked_array([middles.take(encoded.indices)])


def _middle(text: str) -> float | None:
    """Return the number, or the middle of the range; for an open range, its end."""
    if (exact := parse_number(text)) is not None:
        return float(exact)
    if (span := read_range(text)) is None:
        return None
    ends = [float(end) for end in (span.first, span.last) if end.is_finite()]
    return sum(ends) / len(ends) if ends else None


def _without_index(X: Any) -> Any:
    """Return a frame without its index, which scikit-learn takes for no feature, whatever its name."""
    return X.reset_index(drop=True) if hasattr(X, "reset_index") else X


def _given_back(table: pa.Table, X: Any) -> Any:
    """Convert to the type that was given; a pandas frame keeps its index, so that rows still match labels."""
    if hasattr(X, "columns"):
        back = frames.to_arrow(_without_index(X))[1]
        frame = back(table)
        if hasattr(X, "index"):
            frame.index = X.index
        return frame
    columns = [column.to_numpy() for column in table.columns]
    if all(pa.types.is_floating(column.type) for column in table.columns):
        return np.column_stack(columns)
    cells = np.empty(table.shape, dtype=object)
    for j, column in enumerate(table.columns):
        cells[:, j] = [np.nan if value is None else value for value in column.to_pylist()]
    return cells
