"""Showing results: a result asks here for a form of itself, and ``report`` registers how each form is made.

So results know nothing of pages and charts, whose packages take a second to load: a form is loaded when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Maker = TypeVar("Maker", bound=Callable[..., Any])

# Where the makers of each form register themselves.
FORMS = {
    "html": "shoal.report.notebook",
    "page": "shoal.report.html",
    "verdict page": "shoal.report.failing",
    "charts": "shoal.report.pictures",
    "chart": "shoal.report.plots",
}
_makers: dict[tuple[str, str], Callable[..., Any]] = {}


def shows(kind: str, form: str) -> Callable[[Maker], Maker]:
    """Register what makes a form of the results of a class, named as its class is."""

    def registered(make: Maker) -> Maker:
        _makers[kind, form] = make
        return make

    return registered


def shown(result: object, form: str, *more: Any, **options: Any) -> Any:
    """A result in one of its forms."""
    import_module(FORMS[form])
    make = next(_makers[base.__name__, form] for base in type(result).__mro__ if (base.__name__, form) in _makers)
    return make(result, *more, **options)


class Shown:
    """A result that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        return str(shown(self, "html"))
