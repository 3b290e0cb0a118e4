"""A search's answer as data: what becomes of each tuple."""

from shoal.recoding.recoding import Cells, Cuts, FullDomain, Parts, Recoding

__all__ = ["Cells", "Cuts", "FullDomain", "Parts", "Recoding"]
