"""Secure multiparty computation: statistics over the rows of several parties that show only results."""

from shoal.smc.parties import Parties, Party, make_party
from shoal.smc.plan import SharePlan
from shoal.smc.share import SharedResult, share

__all__ = ["Parties", "Party", "SharePlan", "SharedResult", "make_party", "share"]
