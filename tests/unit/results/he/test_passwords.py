"""A secret key with a password: useless without it, and the password is nowhere."""

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from shoal import he
from shoal.cli import app
from shoal.errors import CiphertextError, PolicyError
from shoal.results.he.keys import EncryptionKey

PASSWORD = "correct horse battery staple"


def test_only_the_password_opens_the_key(tmp_path: Path) -> None:
    secret, public = he.make_key_pair(tmp_path / "hospital", password=PASSWORD)
    table = he.encrypt(pa.table({"age": [31, 45]}), public, bounds={"age": (0, 120)})
    result = he.compute(table, public, mean=["age"])
    assert he.decrypt(result, secret, password=PASSWORD).figures == {"mean of age": 38}
    for wrong, message in ((None, "has a password"), ("", "has a password"), (PASSWORD + " ", "is wrong")):
        with pytest.raises(CiphertextError, match=message) as caught:
            he.decrypt(result, secret, password=wrong)
        assert PASSWORD not in str(caught.value)
    content = secret.read_bytes()
    assert PASSWORD.encode() not in content
    open_key, _ = he.make_key_pair(tmp_path / "open")
    kind = EncryptionKey.load(open_key, secret=True).context.serialize(save_secret_key=True)[:8]
    assert kind not in content  # nothing of a serialized key is readable


def test_the_same_key_is_encrypted_differently_each_time(tmp_path: Path) -> None:
    from shoal.results.he.passwords import sealed, unsealed

    told, first = sealed(b"key", PASSWORD, "a")
    again, second = sealed(b"key", PASSWORD, "a")
    assert (told, first) != (again, second)
    assert unsealed("x", told, first, PASSWORD, "a") == b"key"
    with pytest.raises(CiphertextError, match="wrong"):
        unsealed("x", told, first, PASSWORD, "b")  # it belongs to another public key
    with pytest.raises(PolicyError, match="empty"):
        sealed(b"key", "", "a")


def test_the_command_line_takes_a_file_with_the_password_and_says_unverified(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PASSWORD + "\n")
    (tmp_path / "age.csv").write_text("age\n31\n45\n")
    given = ["--password-file", str(tmp_path / "password")]

    def run(*arguments: str) -> str:
        ran = CliRunner().invoke(app, list(arguments))
        assert ran.exit_code == 0, ran.output
        assert PASSWORD not in ran.output
        return ran.output

    name = str(tmp_path / "h")
    run("keypair", name, *given)
    run("encrypt", str(tmp_path / "age.csv"), "--key", f"{name}.public.key", "--bounds", "age=0:120", "-o", f"{name}.e")
    run("compute", f"{name}.e", "--key", f"{name}.public.key", "--mean", "age", "-o", f"{name}.r")
    assert "mean of age: 38 (unverified)" in run("decrypt", f"{name}.r", "--key", f"{name}.secret.key", *given)
    refused = CliRunner().invoke(app, ["decrypt", f"{name}.r", "--key", f"{name}.secret.key"])
    assert refused.exit_code == 2
    assert "38" not in refused.output
