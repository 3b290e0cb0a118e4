"""Signed certificates: Ed25519, by the package ``cryptography`` (the extra ``sign``).

What is signed is the canonical JSON of the certificate without its field ``signature``: UTF-8, keys sorted by code
point, no blanks, no escapes but those that JSON asks for, numbers as Python's ``json`` writes them (the shortest that
read back equal). Before it stand the words ``shoal certificate`` and a line end, so that no signature fits anything
else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.files import formats
from shoal.errors import DataError, ShoalError, already_there

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"


def canonical(certificate: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    unsigned = {name: value for name, value in certificate.items() if name != "signature"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b"shoal certificate\n" + text.encode()


def make_keys(name: str | Path, *, password: str | None = None, force: bool = False) -> tuple[Path, Path]:
    """Write a new key pair: NAME.key, which only its owner may read, and NAME.pub, which everybody may.

    With a ``password`` the private key is encrypted.
    """
    _require_package()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private, public = (Path(f"{name}.{kind}") for kind in ("key", "pub"))
    for path in (private, public):
        if not force and path.exists():
            raise already_there(path)
    key = Ed25519PrivateKey.generate()
    lock = form.BestAvailableEncryption(password.encode()) if password else form.NoEncryption()
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock)
    shown = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    formats.write_bytes(private, secret, force=force, private=True)
    formats.write_bytes(public, shown, force=force)
    return private, public


def sign(
    certificate: Mapping[str, Any], key: str | Path | Ed25519PrivateKey, *, password: str | None = None
) -> dict[str, Any]:
    """The certificate with a signature by a private key, which is the path of a PEM file or the key itself."""
    own = read_private(key, password=password) if isinstance(key, str | Path) else key
    signature = {
        "algorithm": ALGORITHM,
        "key": fingerprint(own.public_key()),
        "value": own.sign(canonical(certificate)).hex(),
    }
    return {name: value for name, value in certificate.items() if name != "signature"} | {"signature": signature}


def signed_by(certificate: Mapping[str, Any], key: str | Path | Ed25519PublicKey) -> bool:
    """Whether a certificate has a signature, and it is by the owner of a public key (a PEM file, or the key itself)."""
    public = read_public(key) if isinstance(key, str | Path) else key
    from cryptography.exceptions import InvalidSignature

    signature = certificate.get("signature")
    if not isinstance(signature, Mapping) or signature.get("key") != fingerprint(public):
        return False
    try:
        public.verify(bytes.fromhex(signature["value"]), canonical(certificate))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return False
    return True


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of the 32 bytes of a public key."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def read_private(path: str | Path, *, password: str | None = None) -> Ed25519PrivateKey:
    """The private key in a PEM file."""
    _require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_bytes(path), password.encode() if password else None)
    except TypeError:  # the package's word for a password that is missing, or not needed
        hint = "this key has none: leave it out" if password else "give it"
        option = None if password else "--password-file"
        raise DataError(f"{path}: the password does not go with this key", hint, option=option) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = "is the password right?" if password else "shoal.make_keys makes one"
        option = None if password else "shoal keys"
        raise DataError(f"{path}: no private key can be read from it", hint, option=option) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{path}: is not an Ed25519 key", "shoal.make_keys makes one", option="shoal keys")
    return key


def read_public(path: str | Path) -> Ed25519PublicKey:
    """The public key in a PEM file."""
    _require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_bytes(path))
    except (ValueError, UnsupportedAlgorithm):
        raise DataError(f"{path}: no public key can be read from it", "name the .pub file of the signer") from None
    if not isinstance(key, Ed25519PublicKey):
        raise DataError(f"{path}: is not an Ed25519 key", "name the .pub file of the signer")
    return key


def _bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _require_package() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ShoalError("signing needs the package cryptography", "python -m pip install 'shoal[sign]'") from None
