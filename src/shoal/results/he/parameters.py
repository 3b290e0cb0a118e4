"""Parameters of the two schemes, BFV and CKKS, and which of them have 128 bits of security.

BFV: Fan and Vercauteren, "Somewhat practical fully homomorphic encryption", 2012; Brakerski, CRYPTO 2012.
CKKS: Cheon, Kim, Kim and Song, "Homomorphic encryption for arithmetic of approximate numbers", ASIACRYPT 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from shoal.errors import CiphertextError, PolicyError

Scheme = Literal["bfv", "ckks"]

# The most bits of the coefficient modulus by polynomial degree, for 128 bits of security against classical computers
# with a ternary secret: Albrecht et al., "Homomorphic Encryption Standard", 2018, table 1.
STANDARD = {1024: 27, 2048: 54, 4096: 109, 8192: 218, 16384: 438, 32768: 881}

# The largest primes below 2**60 that are 1 modulo twice the degree, so that there are as many slots as the degree.
PLAIN_MODULUS = {8192: 1152921504606830593, 16384: 1152921504606748673}

# What computations need. In BFV, 8192 and 218 bits leave 107 bits of noise budget in a fresh ciphertext, 35 after a
# product: any multiple below the plain modulus, and sums of 2**35 products.
COEFFICIENTS: dict[Scheme, dict[int, tuple[int, ...]]] = {
    "bfv": {8192: (43, 43, 44, 44, 44), 16384: (48, 48, 48, 49, 49, 49, 49, 49, 49)},
    "ckks": {8192: (60, 40, 40, 60), 16384: (60, 40, 40, 60)},
}
SCALE_BITS = 40  # of CKKS: a number x is encoded as the whole number nearest to x * 2**40
LARGEST = 2.0**40  # of CKKS: larger results would lose their last digits in floating-point numbers
PROBES = 8  # slots at the end of every ciphertext with known values


@dataclass(frozen=True)
class EncryptionParameters:
    """The parameters of a key pair, which all its files carry."""

    scheme: Scheme
    degree: int
    coefficient_bits: tuple[int, ...]

    @classmethod
    def chosen(cls, scheme: str, degree: int, coefficient_bits: Sequence[int] | None = None) -> EncryptionParameters:
        """Return the parameters that a user asks for, or raise an error if they are weak or too small to compute."""
        schemes = next((name for name in get_args(Scheme) if name == scheme), None)
        if schemes is None:
            raise PolicyError(f"unknown scheme {scheme!r}", "bfv (exact, whole numbers) or ckks (approximate)")
        usual = COEFFICIENTS[schemes].get(degree)
        bits = usual if coefficient_bits is None else tuple(int(n) for n in coefficient_bits)
        if bits is None:  # say that it is weak, if it is
            bits = COEFFICIENTS[schemes][8192]
        parameters = cls(schemes, degree, bits)
        if weakness := parameters.weakness:
            raise PolicyError(weakness, "a degree of 8192 or 16384 without other bits is safe")
        if usual is None or sum(bits) < sum(usual) or (schemes == "bfv" and bits != usual):
            raise PolicyError(
                "these parameters are safe, but computations with them are not supported",
                "choose a degree of 8192 or 16384, and leave the bits out",
            )
        return parameters

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> EncryptionParameters:
        """Return the parameters in the header of a file, or raise an error if they are weak."""
        bits = [int(n) for n in fields["coefficient_bits"]]
        try:
            return cls.chosen(fields["scheme"], int(fields["degree"]), bits)
        except PolicyError as error:
            raise CiphertextError(f"refused: {error.message}", "create new keys") from None

    @property
    def weakness(self) -> str | None:
        """Why these parameters have fewer than 128 bits of security; None if they have them."""
        total, max_bits = sum(self.coefficient_bits), STANDARD.get(self.degree)
        if max_bits is None:
            return (
                f"degree {self.degree} is not in the Homomorphic Encryption Standard ({', '.join(map(str, STANDARD))})"
            )
        if total > max_bits:
            return (
                f"degree {self.degree} with {total} bits of coefficient modulus has fewer than 128 bits of security: "
                f"at most {max_bits} bits are allowed"
            )
        return None

    @property
    def exact(self) -> bool:
        """Whether decrypted results are exact."""
        return self.scheme == "bfv"

    @property
    def slots(self) -> int:
        """How many numbers a ciphertext holds."""
        return self.degree if self.exact else self.degree // 2

    @property
    def rows(self) -> int:
        """How many of these are rows of a table; the others are probes."""
        return self.slots - PROBES

    @property
    def plain_modulus(self) -> int:
        """The modulus of whole numbers in BFV: results are right if their size is below half of it."""
        return PLAIN_MODULUS[self.degree]

    def n_chunks(self, n_rows: int) -> int:
        """Return how many ciphertexts a column needs."""
        return max(1, -(-n_rows // self.rows))

    def fresh_error(self, magnitude: float) -> float:
        """Return a bound on the error of a number up to ``magnitude`` in a fresh CKKS ciphertext.

        Lemma 1 of Cheon et al. (encoding and encryption, six standard deviations), with a secret of full weight; the
        last term covers the floating-point numbers of encoding and decoding.
        """
        deviation, n = 3.3, self.degree
        noise = 8 * math.sqrt(2) * deviation * n + 6 * deviation * math.sqrt(n) + 16 * deviation * n
        return noise / 2.0**SCALE_BITS + magnitude * 2.0**-44

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON represents them."""
        return {**asdict(self), "coefficient_bits": list(self.coefficient_bits)}
