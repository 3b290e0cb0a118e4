"""The receipt of a release: details that its certificate must not disclose, kept by the owner of the original.

An unkeyed hash of the input confirms guesses: someone who knows all but a few cells of a small table could try them
out. So the certificate has keyed digests (HMAC-SHA-256), and only the receipt has the key, 256 random bits. With it,
the owner can prove at any time which table a release was made from. Anyone who has the receipt can test guesses: keep
it with the data.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.formats import atomic_files
from shoal.errors import DataError
from shoal.text.bounded import read_bounded
from shoal.text.jsonable import finite, read_json

if TYPE_CHECKING:
    from shoal.release import Release

SCHEMA = "shoal-receipt/1"
KEY_BYTES = 32


def new_key() -> bytes:
    """Return 256 random bits."""
    return secrets.token_bytes(KEY_BYTES)


def keyed(key: bytes, purpose: str, fingerprint: str) -> str:
    """Return the HMAC-SHA-256 of a fingerprint; ``what`` separates the digests of different kinds of data."""
    return hmac.new(key, f"shoal {purpose}\n{fingerprint}".encode(), "sha256").hexdigest()


def receipt_of(release: Release, certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the receipt that belongs to a certificate and stays with the original; plain values for JSON."""
    recoding = release.recoding
    receipt = {
        "schema": SCHEMA,
        "key": release.key.hex(),
        "input": {"sha256": release.counted.fingerprint, "records": release.counted.n_records},
        "output": {"sha256": certificate["output"]["sha256"]},
        "hierarchies": recoding.fingerprints,
        "policy": release.policy.model_dump(mode="json", exclude_none=True),
        "levels": release.levels,
        "requirements": [verdict.as_dict() for verdict in release.verdicts.verdicts],
        "measured": release.measured.as_dict(),
        "loss": dict(release.loss),
        "search": {"nodes": recoding.n_nodes, "evaluated": recoding.n_evaluated, "bound": recoding.bound},
        "attacks": None if release.attacks is None else release.attacks.as_dict(),
        **({} if recoding.hiding is None else {"hiding": asdict(recoding.hiding)}),
        "created": certificate["created"],
    }
    return {name: finite(value) for name, value in receipt.items()}


def write_receipt(receipt: Mapping[str, Any], path: str | Path, *, force: bool = False) -> None:
    """Write a receipt that only its owner may read."""
    atomic_files.write_text(
        Path(path), json.dumps(receipt, indent=2, ensure_ascii=False) + "\n", force=force, private=True
    )


def read_receipt(receipt: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    """Return a receipt from a path or plain values; raise DataError if it is not one."""
    claims: Any = receipt
    if isinstance(receipt, str | Path):
        try:
            claims = read_json(read_bounded(receipt).decode("utf-8-sig"))
        except OSError as error:
            raise DataError(f"receipt {receipt} cannot be read ({error.strerror})") from None
        except ValueError:
            raise DataError(
                f"the receipt {receipt} is not JSON", "Release.save writes one", option="shoal anonymize --receipt"
            ) from None
    if not isinstance(claims, Mapping) or claims.get("schema") != SCHEMA:
        raise DataError(
            f"not a receipt in the format {SCHEMA}", "Release.save writes one", option="shoal anonymize --receipt"
        )
    key_of(claims)
    digests = [claims.get(name) for name in ("input", "output")]
    are_digests = all(isinstance(part, Mapping) and isinstance(part.get("sha256"), str) for part in digests)
    if not are_digests or not isinstance(claims.get("hierarchies"), Mapping):
        raise DataError("the receipt is incomplete", "was it modified?")
    return claims


def key_of(receipt: Mapping[str, Any]) -> bytes:
    """Return the key in a receipt."""
    try:
        key = bytes.fromhex(receipt["key"])
    except (KeyError, TypeError, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise DataError(f"the receipt contains no key of {KEY_BYTES} bytes", "was it modified?")
    return key
