"""Secure multiparty computation: statistics over the rows of several parties that show only results."""

from shoal.results.smc.parties import Parties, Party, make_party
from shoal.results.smc.plan import SharePlan
from shoal.results.smc.share import SharedResult, share

__all__ = ["Parties", "Party", "SharePlan", "SharedResult", "make_party", "share"]
