"""Searches that recode records class by class, or cell by cell."""
