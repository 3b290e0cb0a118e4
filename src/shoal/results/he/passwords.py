"""The password of a secret key: scrypt makes a key of it, AES-GCM encrypts the file with that.

C. Percival and S. Josefsson, "The scrypt password-based key derivation function", RFC 7914, 2016; AES-GCM: NIST
SP 800-38D. The cost is fixed, so that no file can ask for more memory than that. Passwords are never written or logged.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from shoal.errors import CiphertextError, PolicyError, ShoalError

COST = 2**15  # of scrypt, with blocks of 8: 32 MB and about a tenth of a second for each guess
_BLOCK = 8
_MEMORY = 2 * 128 * COST * _BLOCK


def sealed(payload: bytes, password: str, identity: str) -> tuple[dict[str, str], bytes]:
    """Encrypt a key with a password; ``identity`` is the key that it must belong to. Return salt and nonce with it."""
    if not password:
        raise PolicyError("the password is empty", "choose a long one, or none at all")
    salt, nonce = secrets.token_bytes(16), secrets.token_bytes(12)
    encrypted = _cipher(password, salt).encrypt(nonce, payload, identity.encode())
    return {"salt": salt.hex(), "nonce": nonce.hex()}, encrypted


def unsealed(path: Any, fields: Mapping[str, Any], payload: bytes, password: str | None, identity: str) -> bytes:
    """Decrypt a key that has a password, or say that it needs one, or that this is not it."""
    if not password:
        raise CiphertextError(
            f"{path}: this secret key has a password",
            "pass password, or a file whose first line it is",
            option="--password-file",
        )
    salt, nonce = bytes.fromhex(fields["salt"]), bytes.fromhex(fields["nonce"])
    if (len(salt), len(nonce)) != (16, 12):
        raise ValueError("not a salt and a nonce")
    cipher = _cipher(password, salt)
    from cryptography.exceptions import InvalidTag

    try:
        return bytes(cipher.decrypt(nonce, payload, identity.encode()))
    except InvalidTag:
        raise CiphertextError(f"{path}: the password is wrong, or the file is damaged") from None


def _cipher(password: str, salt: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise ShoalError("a key with a password needs cryptography", "python -m pip install 'shoal[sign]'") from None
    derived = hashlib.scrypt(password.encode(), salt=salt, n=COST, r=_BLOCK, p=1, maxmem=_MEMORY, dklen=32)
    return AESGCM(derived)
