"""What may be published: the released rows, their certificate, and a recoding to replay."""

from shoal.release.release import Release, formulas_in, now, refuse_to_overwrite

__all__ = ["Release", "formulas_in", "now", "refuse_to_overwrite"]
