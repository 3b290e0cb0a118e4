"""The command ``shoal web``, which serves the page."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Reading, with_options
from shoal.cli.signals import loading
from shoal.errors import DataError

_PACKAGES = ("starlette", "uvicorn", "python_multipart", "h11", "anyio")


@dataclass(frozen=True)
class Serving:
    """Options for serving the page."""

    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 0
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True
    max_upload: Annotated[int, typer.Option(help="Megabytes that an upload may have.", min=1)] = 500
    host: Annotated[str, typer.Option(help="The address to listen on: this computer only.")] = "127.0.0.1"
    insist: Annotated[
        bool, typer.Option("--i-know-what-i-do", help="Let other computers in, by --host and with both TLS files.")
    ] = False
    tls_certificate: Annotated[Path | None, typer.Option(help="The certificate of the server, PEM.")] = None
    tls_key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None


@with_options
def web(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A table to open at once, or the folder in which tables may be opened.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("-p", "--policy", help="The policy to begin with; proposed when left out.")
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder in which the page may open tables and policies; may be repeated. Left out, that of DATA, or "
            "the current one."
        ),
    ] = None,
    *,
    reading: Reading,
    serving: Serving,
) -> None:
    """Open the whole workflow in the browser, on this computer only. Ctrl-C stops it."""
    with loading():
        try:
            from shoal.web.server import check_host, serve
            from shoal.web.workspace import Settings, Workspace
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in _PACKAGES:
                raise
            raise DataError(
                "the page needs packages that are not installed", "python -m pip install 'shoal[web]'"
            ) from None

    check_host(serving.host, insisting=serving.insist, certificate=serving.tls_certificate, key=serving.tls_key)
    path = None if data is None or "://" in data else Path(data)
    if path is not None and not path.exists():
        raise DataError(f"{path} does not exist")
    roots = list(folder or [])
    if path is not None:
        roots.append(path if path.is_dir() else path.parent)
    if data is not None and data.startswith("duckdb://"):  # a file too
        file, mark, table_of_it = data.removeprefix("duckdb://").rpartition("#")
        database = Path(file if mark else table_of_it).resolve()
        data = f"duckdb://{database}{mark}{table_of_it if mark else ''}"
        roots.append(database.parent)
    if policy is not None:
        roots.append(policy.parent)
    for root in roots:
        if not root.is_dir():
            raise DataError(f"{root}: is not a folder")
    settings = Settings(reading.engine, reading.memory, reading.separator, reading.encoding, reading.header)
    workspace = Workspace(roots or [Path()], settings)

    def ready(address: str) -> None:
        print(f"shoal web: {address}", file=sys.stderr)
        print("Open this address in a browser on this computer. Ctrl-C stops the server.", file=sys.stderr, flush=True)

    named = data if path is None else None if path.is_dir() else str(path.resolve())
    serve(
        workspace,
        host=serving.host,
        port=serving.port,
        certificate=serving.tls_certificate,
        key=serving.tls_key,
        upload_bytes=serving.max_upload * 2**20,
        data=named,
        policy=None if policy is None else policy.resolve(),
        table=reading.table,
        parquet=reading.parquet,
        browser=serving.browser,
        ready=ready,
    )
