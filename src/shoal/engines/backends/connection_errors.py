"""Connection errors, reported without the messages of the driver.

Drivers quote values and connection strings in their messages, so none of these is passed on. The error says what failed
and gives the engine's error code.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator

from shoal.errors import DataError, OutputError, ShoalError

SECONDS = 20  # seconds to wait for an answer


def safe_uri(uri: str) -> str:
    """Return a connection string that may be shown: without the password and without options that may contain one."""
    return re.sub(r"//([^:/@]*)(:.*)?@", r"//\1@", uri, flags=re.S).partition("?")[0]


@contextlib.contextmanager
def driver_errors(public_uri: str, attempt: str = "be reached") -> Iterator[None]:
    """Convert errors of the driver to errors of shoal."""
    try:
        yield
    except ShoalError:
        raise
    except ImportError:
        raise DataError(
            f"{public_uri}: its driver is not installed", "python -m pip install 'shoal[postgres]'"
        ) from None
    except Exception as error:
        raise failure(public_uri, attempt, error) from None


def require_master(named: str) -> None:
    """Raise an error if no Spark master listens; Spark itself would try for minutes. One of several is enough."""
    if not named.startswith("local") and not any(map(_answers, named.split(","))):
        raise DataError(
            f"no Spark master answers at spark://{named}",
            "is it running, and are host and port right? Without a cluster: spark://local[2]",
        )


def _answers(address: str) -> bool:
    """Return whether a server is listening at host:port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def failure(engine: str, attempt: str, error: Exception) -> ShoalError:
    """Describe a driver's error by its class and code, never by its text, which may quote a cell or a password."""
    code = getattr(error, "sqlstate", None) or getattr(error, "getErrorClass", lambda: None)()
    kind = f"{type(error).__name__} {code}" if code else type(error).__name__
    output = attempt.startswith(("writ", "look for"))
    hints = _HINTS | (_WRITING if output else _OPENING if attempt == "be opened" else _READING)
    if attempt == "be reached":
        text = str(error).lower()
        hint = next((advice for part, advice in _UNREACHED.items() if part in text), None)
    else:
        hint = next((hints[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in hints), None)
    option = "--memory" if hint == _HINTS["OutOfMemoryException"] else None
    return (OutputError if output else DataError)(f"{engine} could not {attempt} ({kind})", hint, option=option)


_HINTS = {
    "OutOfMemoryException": "raise its limit of memory, or give it room to spill in the folder for temporary files",
    "IOException": "is the disk full, or the folder read-only?",
    "TransactionException": "is the disk full, or does another program write there? Nothing was kept",
    "ReadOnlySqlTransaction": "the server is read-only, a replica perhaps: connect to the primary",
    "DiskFull": "the server's disk is full: nothing was kept",
    "OperationalError": "the connection was lost, or the server went away: nothing was kept",
    "AdminShutdown": "the server ended the connection: nothing was kept",
}
_READING = {"InsufficientPrivilege": "ask for the right to read it"}
_OPENING = {"IOException": "is it a DuckDB database, and not open in another program?"}
_WRITING = {
    "InsufficientPrivilege": "ask for the right to do so, or write to another schema",
    "InvalidSchemaName": "there is no such schema: create it first, or name another",
    "DependentObjectsStillExist": "views depend on the table that is there: choose another name",
    "CatalogException": "is there such a schema, and no view of that name?",
    "WrongObjectType": "what has the name is no table, a view perhaps: choose another name",
}
_UNREACHED = {  # by a part of the driver's message
    "password authentication failed": "the server refused the user or the password",
    "no password supplied": "the server asks for a password: set PGPASSWORD, or use ~/.pgpass",
    "no pg_hba.conf entry": "the server lets this user in from elsewhere only",
    'role "': "the server does not know the user",
    'database "': "the server has no such database",
    "translate host": "there is no such host",
    "resolve": "there is no such host",
    "refused": "no server listens there: are host and port right?",
    "no such file": "no server listens there: are host and port right?",
    "timeout": "the server did not answer in time: are host and port right?",
    "timed out": "the server did not answer in time: are host and port right?",
    "invalid literal": "is the URI right? In a password : / @ # and ? are written %3A %2F %40 %23 and %3F",
    "port": "is the URI right? In a password : / @ # and ? are written %3A %2F %40 %23 and %3F",
    "": "are host, port, database, user and password right?",
}
