"""A finished release checked by somebody else: against its certificate, its original, and earlier releases."""
