"""The rest of shoal, loaded once and by one thread, after the first screen stands."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

_LOCK = threading.Lock()  # threads that import modules with circular imports may see them incomplete


def load_screens() -> list[BaseRoute]:
    """Import everything that the other screens need; their routes."""
    with _LOCK:
        from shoal.web.screens import columns, explore, hierarchy, promises, publish, rows, run, stories

    screens = (columns, hierarchy, promises, run, explore, rows, stories, publish)
    return [route for screen in screens for route in screen.ROUTES]
