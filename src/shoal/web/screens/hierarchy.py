"""One column: its values, and the hierarchy along which it may be generalized."""

from __future__ import annotations

from typing import Any

ROUTES: list[Any] = []
