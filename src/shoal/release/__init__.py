"""The release: its rows, its certificate, and a recoding that can be replayed."""

from shoal.release.release import Release, formulas_in, now, refuse_to_overwrite

__all__ = ["Release", "formulas_in", "now", "refuse_to_overwrite"]
