"""Recodings: the result of a search as data, which says what each tuple becomes."""

from shoal.recoding.recoding import Cells, Cuts, FullDomain, Hiding, Parts, Recoding

__all__ = ["Cells", "Cuts", "FullDomain", "Hiding", "Parts", "Recoding"]
