"""Logging: the logger ``shoal`` tells what is being done, for programs that run shoal among other things.

INFO has a line when a function begins and ends, with counts; DEBUG the phases of a search. No line holds a value of
the data, nor the name of a file. Nothing is shown unless the program configures ``logging``.
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
    """The same progress, each new phase of which is logged; figures of a phase change too often to be lines."""
    before = ""

    def tell(what: str, share: float) -> None:
        nonlocal before
        if log.isEnabledFor(logging.DEBUG) and (phase := _NUMBER.sub("…", what)) != before:
            before = phase
            log.debug("%s", phase)
        progress(what, share)

    return tell
