"""Logging: the logger ``shoal`` reports progress to programs that use shoal as a library.

INFO has a line when a function starts and ends, with counts; DEBUG has the phases of a search. No line contains a
value from the data or the name of a file. Nothing is shown unless the program configures ``logging``.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.search.problem import Progress

log = logging.getLogger("shoal")
log.addHandler(logging.NullHandler())  # a library leaves it to the program whether and where anything is written

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def logged(progress: Progress) -> Progress:
    """Wrap a progress callback so that each new phase is logged; figures within a phase change too often to log."""
    before = ""

    def logged_progress(step: str, share: float) -> None:
        nonlocal before
        if log.isEnabledFor(logging.DEBUG) and (phase := _NUMBER.sub("…", step)) != before:
            before = phase
            log.debug("%s", phase)
        progress(step, share)

    return logged_progress
