"""Display of results: a result asks here for a representation, and ``report`` registers how each is made.

So results do not depend on pages and charts, whose packages take a second to load: they are loaded on demand.
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
    """Register the function that makes a representation of the results of a class, given by the name of the class."""

    def registered(make: Maker) -> Maker:
        _makers[kind, form] = make
        return make

    return registered


def represent(result: object, form: str, *args: Any, **options: Any) -> Any:
    """Return a representation of a result."""
    import_module(FORMS[form])
    make = next(_makers[base.__name__, form] for base in type(result).__mro__ if (base.__name__, form) in _makers)
    return make(result, *args, **options)


class Shown:
    """A result that notebooks display as HTML."""

    def _repr_html_(self) -> str:
        return str(represent(self, "html"))
