"""Recodings: the result of a search as data, which says what each tuple becomes."""

from shoal.recoding.recoding import Cells, Cuts, FullDomain, HiddenResults, Parts, Recoding, UniformParts

__all__ = ["Cells", "Cuts", "FullDomain", "HiddenResults", "Parts", "Recoding", "UniformParts"]
