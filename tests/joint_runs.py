"""Joint computations by real processes, for tests: tables, keys and free addresses, and what every party was told."""

from __future__ import annotations

import atexit
import json
import random
import secrets
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from shoal import smc

SERVER = Path(__file__).with_name("joint_party.py")
PORTS = range(20_000, 32_000)  # below those that systems give to outgoing connections

Rows = list[dict[str, Any]]


def loopback() -> str:
    """An address of this computer that no other run uses; only Linux has more than one."""
    return f"127.{secrets.randbelow(250) + 2}.{secrets.randbelow(250)}.1" if sys.platform == "linux" else "127.0.0.1"


def free_address(host: str) -> str:
    """A port that nobody listens on, as host:port."""
    for _ in range(50):
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((host, port))
            except OSError:
                continue
            return f"{host}:{port}"
    raise OSError("no free port")


class JointRuns:
    """A process that forks the parties of one run after the other."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def close(self) -> None:
        """End the process; its parties have ended before."""
        self.server.stdin.close()  # type: ignore[union-attr]
        try:
            self.server.wait(timeout=10)
        finally:
            self.server.kill()
            self.server.wait(timeout=10)
            self.server.stdout.close()  # type: ignore[union-attr]

    def told(
        self, folder: Path, tables: list[Rows], parties: list[dict[str, Any] | None], impostor: int | None = None
    ) -> list[Any]:
        """Run once and return what each party was told; again with other ports if somebody has taken one meanwhile.

        An ``impostor`` takes part with another key than the one that all others have pinned for this party.
        """
        for i, table in enumerate(tables, 1):
            lines = [",".join(map(str, row.values())) for row in table]
            names = next(list(rows[0]) for rows in (table, *tables) if rows)
            (folder / f"{i}.csv").write_text("\n".join([",".join(names), *lines, ""]), encoding="utf-8")
        found: list[Any] = []
        for _ in range(3):
            make_parties(folder, len(tables))
            does = list(parties)
            if impostor is not None:
                does[impostor - 1] = {**(parties[impostor - 1] or {}), "run": made_impostor(folder, impostor)}
            asked = {"folder": str(folder), "parties": does}
            self.server.stdin.write(json.dumps(asked) + "\n")  # type: ignore[union-attr]
            self.server.stdin.flush()  # type: ignore[union-attr]
            found = json.loads(self.server.stdout.readline())  # type: ignore[union-attr]
            if not any("cannot listen" in told.get("error", "") for told in found):
                break
        return found


@cache
def shared_runs() -> JointRuns:
    """The one process that all tests use, which ends with them."""
    made = JointRuns()
    atexit.register(made.close)
    return made


def make_parties(folder: Path, n: int) -> smc.Parties:
    """Write keys and the file of parties."""
    host = loopback()
    own = [smc.make_party(folder / f"party{i}", free_address(host), force=True) for i in range(1, n + 1)]
    blocks = [block.read_text(encoding="utf-8") for _, block, _ in own]
    (folder / "parties.toml").write_text("\n".join(blocks), encoding="utf-8")
    return smc.Parties.load(folder / "parties.toml")


def made_impostor(folder: Path, number: int) -> dict[str, Any]:
    """Return what a party runs with if it has another key than the one that all others have pinned."""
    parties = smc.Parties.load(folder / "parties.toml")
    (folder / "other").mkdir(exist_ok=True)
    address = parties.members[number - 1].address
    key, block, _ = smc.make_party(folder / "other" / f"party{number}", address, force=True)
    blocks = [member.as_toml() for member in parties.members]
    blocks[number - 1] = block.read_text(encoding="utf-8")
    target = folder / "impostor.toml"
    target.write_text("\n".join(blocks), encoding="utf-8")
    return {"parties": str(target), "key": str(key), "timeout": 1}
