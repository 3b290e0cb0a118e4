"""What a step of ``local`` is given, and the memory that it works with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.compiled.jit import compiled_within
from shoal.search.local.kernels import MAX_LOOSE, BoxCodes, Boxes, Ints, LinkedClasses
from shoal.tables.frequency import Floats


class Run(NamedTuple):
    """The parameters of a run of ``improve``."""

    k: int
    limit: int  # records that may be suppressed
    side: int  # of the classes that it may change
    n_steps: int
    hot: float  # the initial temperature
    cold: float  # the final temperature; with ``verify``, the bonus for a class of many kinds
    n_ruined: int  # the most classes that a step dissolves
    verify: bool  # whether requirements go beyond class size
    wishes: float  # the share of steps that begin with the class that a record wishes for


class Scratch(NamedTuple):
    """Working memory for a step."""

    loose: Ints  # (room)  atoms without a class
    paid: Floats  # (room)  the previous cost of each
    keys: Floats  # (room)  the order in which they are assigned
    crowd: Ints  # (crowd)  atoms that can form a new class with a loose one
    gains: Floats  # (crowd)  the saving in the current class of each
    bounds: Floats  # (crowd)  a lower bound on the cost of the class with it
    handicap: Floats  # (crowd)  a penalty on choosing it
    chosen: Ints  # places in the crowd
    box: BoxCodes  # (1, words)  of the new class
    examined_by: Ints  # (all classes)  the mark of the last atom that examined it
    mark: Ints  # (1)


@compiled_within
def scratch_of(boxes: Boxes, classes: LinkedClasses, k: int) -> Scratch:
    """Return the working memory for classes of about k records."""
    room = MAX_LOOSE + 2 * k
    crowd = room + 8 * k + 64
    return Scratch(
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(crowd, np.int64),
        np.empty(crowd),
        np.empty(crowd),
        np.empty(crowd),
        np.empty(k + 1, np.int64),
        np.empty((1, boxes.codes.shape[1]), np.uint32),
        np.zeros(classes.first.shape[0], np.int64),
        np.zeros(1, np.int64),
    )
