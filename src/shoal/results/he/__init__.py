"""Homomorphic encryption: somebody computes on numbers that only the holder of the secret key can read."""

from shoal.results.he.computation import Computation, LinearScore
from shoal.results.he.compute import EncryptedResult, compute
from shoal.results.he.decrypt import DecryptedResult, decrypt
from shoal.results.he.encrypt import EncryptedTable, encrypt
from shoal.results.he.keys import EncryptionKey, make_key_pair

__all__ = [
    "Computation",
    "DecryptedResult",
    "EncryptedResult",
    "EncryptedTable",
    "EncryptionKey",
    "LinearScore",
    "compute",
    "decrypt",
    "encrypt",
    "make_key_pair",
]
