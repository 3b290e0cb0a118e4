"""Microaggregation: records in groups of nearest, and every number replaced by the centre of its group."""

from shoal.masking.masking import Masked, microaggregate

__all__ = ["Masked", "microaggregate"]
