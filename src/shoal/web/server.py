"""The server: on this computer only, stopped by Ctrl-C, with nothing left behind."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from shoal.errors import DataError
from shoal.web.app import UPLOAD_BYTES, application
from shoal.web.loading import load_screens
from shoal.web.screens.open import open_in
from shoal.web.security import Secrets
from shoal.web.workspace import Workspace

MAX_SILENT = 64  # connections of a computer without a request: beyond that the oldest is closed
HEADER_SECONDS = 10.0  # in which a connection must have sent its first headers
SWITCH_SECONDS = (
    0.001  # seconds after which a job that computes lets a request have Python's lock; there are many such turns
)


class _Protocol(H11Protocol):
    """Closes connections that do not say what they want, so that they never keep others out.

    What is refused is answered and closed at once, so only the user's browser holds connections for longer.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        self.loop.call_later(HEADER_SECONDS, self._close_if_silent)
        silent_connections = [other for other in self.connections if isinstance(other, _Protocol) and other._is_silent]
        silent = [
            other for other in silent_connections if self.client and other.client and other.client[0] == self.client[0]
        ]
        if len(silent) > MAX_SILENT:
            min(silent, key=lambda other: other._since).transport.close()

    @property
    def _is_silent(self) -> bool:
        return self.cycle is None and not self.transport.is_closing()

    def _close_if_silent(self) -> None:
        if self._is_silent:
            self.transport.close()


class _Server(uvicorn.Server):
    """Stops on a signal without raising it again: Ctrl-C is the normal way to end a server."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], stopping: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._stopping.is_set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

        def stop(number: int, frame: FrameType | None) -> None:
            self.should_exit = True
            self._stopping.set()  # ends the event streams of pages that follow a job

        try:
            before = {number: signal.signal(number, stop) for number in numbers}
        except ValueError:  # not in the main thread: `stopping` ends the server
            yield
            return
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def check_host(host: str, *, insisting: bool, certificate: Path | None, key: Path | None) -> None:
    """Refuse to serve other computers unless the user insists and gives TLS files."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if (certificate is None) != (key is None):
        raise DataError("TLS needs two files, the certificate and its key", "give --tls-certificate and --tls-key")
    if loopback:
        return
    if not insisting or certificate is None:
        raise DataError(
            "the page shows private data and is served to this computer only",
            "leave --host out; or give --i-know-what-i-do with --tls-certificate and --tls-key",
        )


def serve(
    workspace: Workspace,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: Path | None = None,
    key: Path | None = None,
    upload_bytes: int = UPLOAD_BYTES,
    data: str | None = None,
    policy: Path | None = None,
    table: str | None = None,
    parquet: str | None = None,
    browser: bool = True,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until told to stop; ``ready`` is called with the first address when it answers.

    An address opens the page once. Where one is opened a second time, ``ready`` is called with another.

    ``data`` is a table to open at once, with a ``policy`` where one is named.
    """
    secrets = Secrets()
    scheme = "http" if certificate is None else "https"
    listening = _listening(host, port)
    port = listening.getsockname()[1]
    host_in_address = f"[{host}]" if ":" in host else host
    names = {host_in_address, "localhost"} if host != "127.0.0.1" else {"127.0.0.1", "localhost"}
    app = application(
        workspace,
        secrets,
        hosts=frozenset(f"{name}:{port}" for name in names),
        scheme=scheme,
        upload_bytes=upload_bytes,
        first="/" if data is None else f"/jobs/{open_in(workspace, data, str(policy or ''), table, parquet).number}",
    )

    def address(token: str) -> str:
        return f"{scheme}://{host_in_address}:{port}/?token={token}"

    secrets.tokens.renewed = lambda token: ready(address(token))

    def answering() -> None:
        ready(address(secrets.tokens.current))
        if browser:
            _open_browser(workspace.folder, address(secrets.tokens.current))
        threading.Thread(target=load_screens, daemon=True).start()  # while the browser draws the first screen

    sys.setswitchinterval(SWITCH_SECONDS)
    logging.getLogger("uvicorn.error").disabled = True  # a traceback may quote the data
    logging.getLogger("asyncio").disabled = True
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=64 * 2**10,
        ssl_certfile=certificate,
        ssl_keyfile=None if key is None else str(key),
    )
    server = _Server(config, answering, workspace.stopping)
    try:
        with listening:
            asyncio.run(server.serve([listening]))
    finally:
        workspace.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise DataError(f"port {port} of {host} cannot be used ({error.strerror})", "leave --port out") from None
    listener.listen(128)
    return listener


def _open_browser(folder: Path, address: str) -> None:
    """By way of a private file: other users of this computer can read the command lines of processes."""
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        '<!doctype html><meta charset="utf-8"><title>shoal</title>'
        f'<meta http-equiv="refresh" content="0;url={address}">'
        f'<p><a href="{address}">Open shoal</a></p>',
        encoding="utf-8",
    )
    webbrowser.open(page.as_uri())
