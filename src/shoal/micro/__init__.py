"""Microaggregation: records in groups of nearest, and every number replaced by the centre of its group."""

from shoal.micro.masking import Masked, microaggregate

__all__ = ["Masked", "microaggregate"]
