"""Microaggregation: similar records are grouped, and every number is replaced by the centre of its group."""

from shoal.masking.masking import Masked, microaggregate

__all__ = ["Masked", "microaggregate"]
