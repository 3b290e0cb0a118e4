"""The two keys: the secret one decrypts and stays with its owner; the public one encrypts and computes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.engines.formats import atomic_files
from shoal.errors import CiphertextError, ShoalError
from shoal.results.he.container import damaged, read_container, write_container
from shoal.results.he.parameters import SCALE_BITS, EncryptionParameters
from shoal.results.he.passwords import sealed, unsealed


@dataclass(frozen=True, eq=False)
class EncryptionKey:
    """A public or a secret key, with its parameters; ``identity`` is the same for both keys of a pair."""

    parameters: EncryptionParameters
    identity: str
    secret: bool
    context: Any = field(repr=False)  # TenSEAL's

    @classmethod
    def load(cls, path: str | Path, *, secret: bool = False, password: str | None = None) -> EncryptionKey:
        """Read NAME.public.key, or NAME.secret.key if ``secret``; one is not accepted for the other."""
        tenseal = load_tenseal()
        header, parts = read_container(path, "secret key" if secret else "public key")
        with damaged(path):
            parameters = EncryptionParameters.read(header["parameters"])
            (payload,) = parts
            if secret and "password" in header:
                payload = unsealed(path, header["password"], payload, password, str(header["key"]))
            context = tenseal.context_from(payload)
            key_context = context.seal_context().data.key_context_data()
            public = hashlib.sha256(payload).hexdigest() if not secret else header["key"]
            first_context = (
                context.seal_context().data.first_context_data()
            )  # without the last prime, which ciphertexts lack
            bit_counts = [key_context.total_coeff_modulus_bit_count(), first_context.total_coeff_modulus_bit_count()]
            bits = parameters.coefficient_bits
            fits = (key_context.parms().poly_modulus_degree(), bit_counts) == (
                parameters.degree,
                [sum(bits), sum(bits[:-1])],
            )
            kinds = tenseal.SCHEME_TYPE
            fits = fits and key_context.parms().scheme() == (kinds.BFV if parameters.exact else kinds.CKKS).value
            if not fits or not context.has_public_key():
                fits = False
            elif parameters.exact:
                fits = key_context.plain_upper_half_threshold() == (parameters.plain_modulus + 1) // 2
            else:
                fits = context.global_scale == 2.0**SCALE_BITS
            fits = fits and not (context.auto_relin or context.auto_rescale or context.auto_mod_switch)
            if not fits or header["key"] != public or context.has_secret_key() != secret:
                raise CiphertextError(f"{path}: the key is not what its header says", "create new keys")
        return cls(parameters, str(public), secret, context)

    def encrypted(self, values: list[int] | list[float]) -> Any:
        """Return the ciphertext of as many numbers as there are slots."""
        tenseal = load_tenseal()
        vector = tenseal.bfv_vector if self.parameters.exact else tenseal.ckks_vector
        return vector(self.context, values)

    def ciphertext(self, content: bytes) -> Any:
        """Read a ciphertext, or raise an error if it does not belong to parameters like these."""
        tenseal = load_tenseal()
        read = tenseal.bfv_vector_from if self.parameters.exact else tenseal.ckks_vector_from
        try:
            vector = read(self.context, content)
            if vector.size() != self.parameters.slots:
                raise ValueError
        except (ValueError, RuntimeError, IndexError, OverflowError, MemoryError):
            raise CiphertextError(
                "a ciphertext cannot be read with the parameters of this key", "was it encrypted with another key?"
            ) from None
        return vector

    def require_same(self, identity: str, subject: str) -> None:
        """Raise an error if a file belongs to another pair of keys."""
        if identity != self.identity:
            raise CiphertextError(
                f"{subject} belongs to another pair of keys ({identity[:12]}, not {self.identity[:12]})",
                "use the keys that it was encrypted with",
            )


def make_key_pair(
    name: str | Path,
    *,
    scheme: str = "bfv",
    degree: int = 8192,
    coefficient_bits: Sequence[int] | None = None,
    password: str | None = None,
    force: bool = False,
) -> tuple[Path, Path]:
    """Write NAME.secret.key, which only its owner may read, and NAME.public.key for those who encrypt or compute.

    Parameters
    ----------
    name
        The path without the ending.
    scheme
        ``bfv`` for exact results of whole numbers and decimals, ``ckks`` for approximate results of any numbers.
    degree
        The degree of the polynomials; parameters with fewer than 128 bits of security are refused.
    coefficient_bits
        The bits of the primes of the coefficients, if not those of the degree.
    password
        Encrypts the secret key in its file; ``decrypt`` asks for it.
    force
        Replace existing files.

    Returns
    -------
    tuple of Path
        The files of the secret and of the public key.

    Raises
    ------
    PolicyError
        If the parameters are unknown or not safe.
    OutputError
        If a file exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import he
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in he.make_key_pair(f"{folder}/hospital")]
    ['hospital.secret.key', 'hospital.public.key']
    """
    parameters = EncryptionParameters.chosen(scheme, degree, coefficient_bits)
    secret, public = (Path(f"{name}.{kind}.key") for kind in ("secret", "public"))
    for path in (secret, public):
        atomic_files.check_place(path, force)
    tenseal = load_tenseal()
    bits = list(parameters.coefficient_bits)
    if parameters.exact:
        context = tenseal.context(
            tenseal.SCHEME_TYPE.BFV, degree, plain_modulus=parameters.plain_modulus, coeff_mod_bit_sizes=bits
        )
    else:
        context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, degree, coeff_mod_bit_sizes=bits)
        context.global_scale = 2.0**SCALE_BITS
    # What TenSEAL does by itself: its rescaling loses digits, and a single product needs none of it. A context that is
    # loaded keeps these settings and cannot change them.
    context.auto_relin = context.auto_rescale = context.auto_mod_switch = False
    # Sums over ciphertexts and one product need neither Galois keys, which are large, nor relinearization keys.
    public_bytes = context.serialize(save_secret_key=False, save_galois_keys=False, save_relin_keys=False)
    secret_bytes = context.serialize(save_secret_key=True, save_galois_keys=False, save_relin_keys=False)
    header = {"key": hashlib.sha256(public_bytes).hexdigest(), "parameters": parameters.as_dict()}
    locked: dict[str, Any] = {}
    if password is not None:
        locked["password"], secret_bytes = sealed(secret_bytes, password, str(header["key"]))
    write_container(secret, {"kind": "secret key", **header, **locked}, [secret_bytes], force=force, private=True)
    write_container(public, {"kind": "public key", **header}, [public_bytes], force=force)
    return secret, public


def loaded_key(key: EncryptionKey | str | Path, *, secret: bool = False, password: str | None = None) -> EncryptionKey:
    """Return a key that is given as an object or as a file."""
    if not isinstance(key, EncryptionKey):
        return EncryptionKey.load(key, secret=secret, password=password)
    if key.secret != secret:
        raise CiphertextError(f"a {'secret' if secret else 'public'} key is needed here, not the other one")
    return key


def load_tenseal() -> Any:
    """Import TenSEAL, or say how to install it."""
    try:
        import tenseal
    except ImportError:
        raise ShoalError(
            "homomorphic encryption needs the package tenseal", "python -m pip install 'shoal[he]'"
        ) from None
    return tenseal
