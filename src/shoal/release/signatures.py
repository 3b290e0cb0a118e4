"""Signed certificates: Ed25519, with the package ``cryptography`` (the extra ``sign``).

The signed message is the text ``shoal certificate``, a line feed, and the canonical JSON of the certificate without
its field ``signature``: UTF-8, keys sorted by code point, no spaces, no escapes except those that JSON requires, and
numbers as Python's ``json`` writes them (the shortest form that reads back equal). The prefix makes sure that the
signature is valid for nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.formats import atomic_files
from shoal.errors import DataError, ShoalError
from shoal.text.bounded import read_bounded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"
VALUE = re.compile(r"[0-9a-f]{128}")
MAX_PASSWORD = 1023  # bytes that the encryption of keys takes


def canonical(certificate: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    unsigned = {name: value for name, value in certificate.items() if name != "signature"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b"shoal certificate\n" + text.encode()


def make_keys(name: str | Path, *, password: str | None = None, force: bool = False) -> tuple[Path, Path]:
    """Write a new key pair: NAME.key, which only its owner may read, and NAME.pub, which is public.

    Parameters
    ----------
    name
        The path of both files, without their suffix.
    password
        Encrypts the private key.
    force
        Overwrite existing files.

    Returns
    -------
    tuple of Path
        The paths of the private and of the public key.

    Raises
    ------
    OutputError
        If a file exists already, or cannot be written.

    Examples
    --------
    >>> import tempfile, shoal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in shoal.make_keys(f"{folder}/office")]
    ['office.key', 'office.pub']
    """
    _require_package()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private, public = (Path(f"{name}.{kind}") for kind in ("key", "pub"))
    for path in (private, public):
        atomic_files.check_place(path, force)
    if password is not None and len(password.encode()) > MAX_PASSWORD:
        raise DataError(f"the password has more than {MAX_PASSWORD:,} bytes", "choose a shorter one")
    key = Ed25519PrivateKey.generate()
    lock = form.BestAvailableEncryption(password.encode()) if password else form.NoEncryption()
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock)
    public_bytes = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    keys = [atomic_files.Content(public, public_bytes), atomic_files.Content(private, secret, private=True)]
    atomic_files.write_files(keys, force=force)
    return private, public


def sign(
    certificate: Mapping[str, Any], key: str | Path | Ed25519PrivateKey, *, password: str | None = None
) -> dict[str, Any]:
    """Return the certificate with a signature by a private key.

    Parameters
    ----------
    certificate
        The certificate, as ``release.certificate`` or ``release.save`` return it.
    key
        The private key: the path of a PEM file, or a key object.
    password
        Of an encrypted private key.

    Returns
    -------
    dict
        The certificate with a signature, as plain values for JSON.

    Raises
    ------
    DataError
        If the key cannot be read, or is of another kind.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, shoal
    >>> release = shoal.anonymize(pa.table({"age": [31, 34]}), k=2, quasi=["age"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     private, public = shoal.make_keys(f"{folder}/office")
    ...     signed = shoal.sign(release.certificate, private)
    ...     shoal.verify_certificate(signed, release.table, key=public).holds
    True
    """
    private_key = read_private(key, password=password) if isinstance(key, str | Path) else key
    signature = {
        "algorithm": ALGORITHM,
        "key": key_fingerprint(private_key.public_key()),
        "value": private_key.sign(canonical(certificate)).hex(),
    }
    return {name: value for name, value in certificate.items() if name != "signature"} | {"signature": signature}


def signed_by(certificate: Mapping[str, Any], key: str | Path | Ed25519PublicKey) -> bool:
    """Return whether a certificate is signed with the private key of a public key (a PEM file or a key object)."""
    public = read_public(key) if isinstance(key, str | Path) else key
    from cryptography.exceptions import InvalidSignature

    signature = certificate.get("signature")
    if not isinstance(signature, Mapping) or set(signature) != {"algorithm", "key", "value"}:
        return False
    if signature["algorithm"] != ALGORITHM or signature["key"] != key_fingerprint(public):
        return False
    if not isinstance(signature["value"], str) or not VALUE.fullmatch(signature["value"]):
        return False  # fromhex would skip blanks: one signature, one text
    try:
        public.verify(bytes.fromhex(signature["value"]), canonical(certificate))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return False
    return True


def key_fingerprint(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of the 32 bytes of a public key."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def read_private(path: str | Path, *, password: str | None = None) -> Ed25519PrivateKey:
    """Read the private key from a PEM file."""
    _require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_bytes(path), password.encode() if password else None)
    except TypeError:  # the package's message for a password that is missing, or not needed
        hint = "this key has no password: omit it" if password else "give it"
        option = None if password else "--password-file"
        raise DataError(f"{path}: wrong password for this key", hint, option=option) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = "is the password right?" if password else "create one with shoal.make_keys"
        option = None if password else "shoal keys"
        raise DataError(f"{path}: contains no readable private key", hint, option=option) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{path}: is not an Ed25519 key", "create one with shoal.make_keys", option="shoal keys")
    _warn_if_readable(path)
    return key


def _warn_if_readable(path: str | Path) -> None:
    """Warn if others on this computer can read a private key."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:  # reading reports it
        return
    if os.name == "posix" and mode & 0o077:
        message = f"{path}: other users of this computer can read this private key; chmod 600 keeps it to its owner"
        warnings.warn(message, UserWarning, stacklevel=3)


def read_public(path: str | Path) -> Ed25519PublicKey:
    """Read the public key from a PEM file."""
    _require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_bytes(path))
    except (ValueError, UnsupportedAlgorithm):
        raise DataError(f"{path}: contains no readable public key", "pass the signer's .pub file") from None
    if not isinstance(key, Ed25519PublicKey):
        raise DataError(f"{path}: is not an Ed25519 key", "pass the signer's .pub file")
    return key


def _bytes(path: str | Path) -> bytes:
    try:
        return read_bounded(path, 2**20)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _require_package() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ShoalError("signing needs the package cryptography", "python -m pip install 'shoal[sign]'") from None
