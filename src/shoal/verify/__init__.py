"""Checks of a finished release by a third party: against its certificate, its original, and earlier releases."""
