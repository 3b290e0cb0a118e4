"""Who may talk to the page: only the browser that was given the token, and only from the page itself.

Cookies do not tell ports of one computer apart, so the pages live below a folder with a random name, and the cookie is
sent for that folder alone: another server on this computer that the browser visits does not get to see it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "shoal"
FORM_BYTES = 4 * 2**20  # of a form without a file
DRAINED = 2 * 2**30  # bytes of a body that is too large which are read and dropped, so that the answer is seen
FORM_SECONDS = 20.0  # in which a form must have arrived
CHUNK_SECONDS = 20.0  # in which the next piece of an upload must arrive
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not no-referrer: with it browsers send `Origin: null` with our own forms, and the check of Origin would be lost.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=()",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Secrets:
    """What only the user's browser knows, new for every server."""

    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # in every form
    room: str = field(default_factory=lambda: "/" + secrets.token_hex(8), repr=False)  # where the pages are
    tokens: Tokens = field(default_factory=lambda: Tokens())


@dataclass
class Tokens:
    """The token of the entrance, which opens it once; ``renewed`` is called with its successor."""

    current: str = field(default_factory=partial(secrets.token_urlsafe, 32), repr=False)
    redeemed: bool = False
    renewed: Callable[[str], None] = lambda _: None

    def redeem(self, token: str) -> bool:
        """Return whether a token opens the entrance; one that was used before is replaced, so that its user can go on.

        Tokens stay in histories, and other users of this computer can read the command lines of browsers.
        """
        if not secrets.compare_digest(token.encode(), self.current.encode()):
            return False
        if not self.redeemed:
            self.redeemed = True
            return True
        self.current, self.redeemed = secrets.token_urlsafe(32), False
        self.renewed(self.current)
        return False


class Gate:
    """Refuses what does not come from the user's browser and our own page; puts the safe headers on every answer."""

    def __init__(
        self,
        app: App,
        secrets: Secrets,
        *,
        hosts: frozenset[str],
        upload_bytes: int,
        scheme: str = "http",
        first: str = "/",
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._hosts = hosts
        self._scheme = scheme
        self._upload_bytes = upload_bytes
        self._first = first  # the screen behind the entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or reject it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets: the server then refuses the handshake
        safe = _with_headers(send)
        headers = _Headers(scope)
        try:
            self._check_origin(scope, headers)
            if scope["path"] == "/" and b"token=" in scope["query_string"]:
                await self._enter(scope, headers, safe)
                return
            if scope["path"] == "/favicon.ico":  # browsers ask for it at the entrance
                await _answer(safe, 204, "")
                return
            self._check_cookie(scope, headers)
            limit = self._upload_bytes if scope["path"] == f"{self._secrets.room}/upload" else FORM_BYTES
            safe = _drained(safe, receive)
            limited = _limited(scope, headers, receive, limit)
        except HTTPException as refused:
            await _answer(safe, refused.status_code, refused.detail)
            return
        await self._app(scope, limited, safe)

    def _check_origin(self, scope: Scope, headers: _Headers) -> None:
        hosts = headers.all("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise HTTPException(400, "This server answers only to its own address.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise HTTPException(405, "Only GET and POST are answered.")
        own_origin = f"{self._scheme}://{hosts[0].lower()}"
        origins = headers.all("origin")
        if any(origin != own_origin for origin in origins) or (scope["method"] == "POST" and len(origins) != 1):
            raise HTTPException(403, "The request came from another site.")
        entering = scope["path"] == "/" and scope["method"] == "GET"
        # A link in another page may lead to the entrance, which asks for the token; nothing else.
        if headers.first("sec-fetch-site") in ("cross-site", "same-site") and not entering:
            raise HTTPException(403, "The request came from another site.")

    def _check_cookie(self, scope: Scope, headers: _Headers) -> None:
        cookie = _cookie(headers)
        if not (scope["path"] + "/").startswith(self._secrets.room + "/") or not secrets.compare_digest(
            cookie.encode(), self._secrets.cookie.encode()
        ):
            raise HTTPException(403, "Open the address that shoal web has printed in the terminal.")

    async def _enter(self, scope: Scope, headers: _Headers, send: Send) -> None:
        """Exchange the token for a cookie. A page and no redirect: a redirect that began in another page, such as the
        file that opens the browser, would arrive without a cookie that is SameSite=Strict."""
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] != "GET" or "prefetch" in headers.first("sec-purpose"):  # no person sees the answer
            raise HTTPException(403, "This address is opened by a person.")
        if not self._secrets.tokens.redeem(token):
            raise HTTPException(403, "An address opens the page once: open the one that shoal web has printed last.")
        room, onward = self._secrets.room, self._secrets.room + self._first
        secure = "; Secure" if self._scheme == "https" else ""
        cookie = f"{COOKIE}={self._secrets.cookie}; Path={room}/; HttpOnly; SameSite=Strict{secure}"
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>shoal</title>'
            f'<meta http-equiv="refresh" content="0;url={onward}"></head>'
            f'<body><main><h1>shoal</h1><p><a href="{onward}">Continue</a></p></main></body></html>'
        )
        await _answer(send, 200, page, {"set-cookie": cookie, "content-type": "text/html; charset=utf-8"})


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]

    def all(self, name: str) -> list[str]:
        return [value for own_name, value in self._pairs if own_name == name]

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")


def _cookie(headers: _Headers) -> str:
    """Ours among the cookies; those of other servers on this computer may be of any shape."""
    parts = (part.strip().partition("=") for header in headers.all("cookie") for part in header.split(";"))
    return next((value for name, _, value in parts if name == COOKIE), "")


def _limited(scope: Scope, headers: _Headers, receive: Receive, limit: int) -> Receive:
    """The same body, which must be small enough and arrive in time."""
    length = headers.first("content-length")
    if length and (not length.isascii() or not length.isdigit() or int(length) > limit):
        raise HTTPException(413, f"At most {limit // 2**20:,} MB are taken.")
    upload = limit != FORM_BYTES
    end = None if upload else asyncio.get_running_loop().time() + FORM_SECONDS
    size = 0
    complete = scope["method"] != "POST"

    async def receive_within_limit() -> Message:
        nonlocal size, complete
        if complete:  # the body is here: the next message is that the browser has disconnected
            return await receive()
        seconds = CHUNK_SECONDS if end is None else end - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(receive(), max(0.0, seconds))
        except TimeoutError:
            raise HTTPException(408, "The request took too long to arrive.") from None
        size += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if size > limit:
            raise HTTPException(413, f"At most {limit // 2**20:,} MB are taken.")
        return message

    return receive_within_limit


def _drained(send: Send, receive: Receive) -> Send:
    """Send the same answers; after "too large" the rest of the body is read and dropped before the connection closes.

    A browser looks at the answer when it has sent everything; closed before that, it would show an error of its own.
    """
    too_large = False

    async def patient(message: Message) -> None:
        nonlocal too_large
        too_large = too_large or message.get("status") == 413
        if not too_large or message["type"] != "http.response.body" or message.get("more_body", False):
            await send(message)
            return
        await send({**message, "more_body": True})
        left = DRAINED
        with suppress(TimeoutError):
            while left > 0:
                part = await asyncio.wait_for(receive(), CHUNK_SECONDS)
                left -= len(part.get("body", b""))
                if not part.get("more_body", False):
                    break
        await send({"type": "http.response.body", "body": b""})

    return patient


def _with_headers(send: Send) -> Send:
    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in message.get("headers", [])]
            names = {name for name, _ in headers}
            missing = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in names]
            message = {**message, "headers": [*headers, *missing]}
        await send(message)

    return safe


async def _answer(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    fields = {"content-type": "text/plain; charset=utf-8", "connection": "close", **(headers or {})}
    body = text.encode()
    fields["content-length"] = str(len(body))
    pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
