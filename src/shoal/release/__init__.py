"""The release: its rows, its certificate, and a recoding that can be replayed."""

from shoal.release.publish import formulas_in, refuse_to_overwrite
from shoal.release.release import Release, now

__all__ = ["Release", "formulas_in", "now", "refuse_to_overwrite"]
