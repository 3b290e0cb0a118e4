"""Which parameters are accepted, and that TenSEAL knows them as we do."""

import pytest

from shoal.errors import CiphertextError, PolicyError
from shoal.results.he.parameters import COEFFICIENTS, PLAIN_MODULUS, STANDARD, EncryptionParameters


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
@pytest.mark.parametrize("degree", [8192, 16384])
def test_parameters_on_offer_are_within_the_standard(scheme: str, degree: int) -> None:
    chosen = EncryptionParameters.chosen(scheme, degree)
    assert sum(chosen.coefficient_bits) <= STANDARD[degree]
    assert EncryptionParameters.read(chosen.as_dict()) == chosen


@pytest.mark.parametrize("degree", PLAIN_MODULUS)
def test_the_plain_modulus_is_a_prime_of_60_bits_that_batches(degree: int) -> None:
    modulus = PLAIN_MODULUS[degree]
    assert modulus % (2 * degree) == 1
    assert modulus.bit_length() == 60
    assert all(pow(a, modulus - 1, modulus) == 1 for a in (2, 3, 5, 7, 11, 13, 17, 19, 23))


@pytest.mark.parametrize(
    ("scheme", "degree", "bits", "told"),
    [
        ("bfv", 4096, None, "fewer than 128 bits of security: at most 109"),
        ("ckks", 4096, [60, 40, 60], "fewer than 128 bits of security: at most 109"),
        ("ckks", 8192, [60, 40, 40, 40, 60], "240 bits of coefficient modulus has fewer than 128 bits"),
        ("bfv", 8192, [60, 60, 60, 60], "fewer than 128 bits"),
        ("bfv", 1000, None, "is not in the Homomorphic Encryption Standard"),
        ("ckks", 8192, [60, 60], "not supported"),
        ("bfv", 32768, None, "not supported"),
        ("rsa", 8192, None, "unknown scheme"),
    ],
)
def test_others_are_refused(scheme: str, degree: int, bits: list[int] | None, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        EncryptionParameters.chosen(scheme, degree, bits)


def test_a_file_with_weak_parameters_is_refused() -> None:
    strong = EncryptionParameters.chosen("ckks", 8192).as_dict()
    with pytest.raises(CiphertextError, match="128 bits"):
        EncryptionParameters.read(strong | {"degree": 4096})


def test_the_bits_on_offer_are_those_that_computations_were_tried_with() -> None:
    assert sum(COEFFICIENTS["bfv"][8192]) == STANDARD[8192]
    assert sum(COEFFICIENTS["ckks"][8192][:-1]) == 140  # room for a scale of 80 bits and a number of 40
