"""The codebook of a file: labels of columns and of values in SPSS, Stata and SAS files.

The codes are the data, and a release contains codes too. Labels tell ``inspect`` the meaning of a column and are copied
to a release in one of these formats, but only for columns that it contains and values that occur in it. The label of a
value that does not occur would reveal that someone was suppressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from shoal.notation import codec
from shoal.notation.forms import read_range
from shoal.notation.numbers import parse_number

LONGEST = 120  # the longest label in SPSS, in bytes


@dataclass(frozen=True)
class Codebook:
    """Labels of columns and, per column, labels of its values, by the text of the value."""

    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, meta: Any) -> Codebook:
        """Build a codebook from the metadata that pyreadstat returns."""
        columns = {name: " ".join(label.split()) for name, label in meta.column_names_to_labels.items() if label}
        values = {
            name: {_text(value): " ".join(str(label).split()) for value, label in labels.items()}
            for name, labels in meta.variable_value_labels.items()
        }
        return cls({name: label for name, label in columns.items() if label}, values)

    def of_release(self, table: pa.Table) -> tuple[dict[str, str], dict[str, dict[float | str, str]]]:
        """Return the labels of a release: of its columns, and of the codes, ranges and sets in them."""
        columns = {name: self.columns[name] for name in table.column_names if name in self.columns}
        values: dict[str, dict[float | str, str]] = {}
        for name in table.column_names:
            if name not in self.values:
                continue
            kind, texts = table.schema.field(name).type, codec.encode_texts(name, table[name]).texts
            labels = {
                text: label for text in texts if (label := self._label(name, text)) and len(label.encode()) <= LONGEST
            }
            numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if numeric or pa.types.is_string(kind):
                values[name] = {float(text) if numeric else text: label for text, label in labels.items()}
        return columns, {name: labels for name, labels in values.items() if labels}

    def _label(self, name: str, text: str) -> str:
        """Describe a released text with the labels of the codebook."""
        labels = self.values[name]
        if text in labels:
            return labels[text]
        if text.startswith("{") and text.endswith("}"):
            parts = [part.strip() for part in text[1:-1].split(",")]
            return " or ".join(labels[part] for part in parts) if all(part in labels for part in parts) else ""
        span = read_range(text)
        codes = (
            [] if span is None else [code for code in labels if (x := parse_number(code)) is not None and span.holds(x)]
        )
        return " or ".join(labels[code] for code in codes)


NO_LABELS = Codebook()


def _text(value: Any) -> str:
    """Format a code in the same way as the codes of a column."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
