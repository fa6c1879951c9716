"""`axolotl health`: the readiness of a running server, asked with the standard library only."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions
from axolotl_cli.text import one_line

_DEFAULT_PATH: Final = "/readyz"
_STATUSES: Final = (200, 503)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_BYTES: Final = 64 * 1024


def health(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The URL of the server or of a health route. Defaults to the address in the settings."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long the whole check may take.")
    ] = 5.0,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Check whether a running server is ready.

    The exit code is 0 if it is ready, 1 if it is not, 3 if it does not answer.
    """
    parts = urlsplit(_url_in_settings(files)) if url is None else _parsed(url)
    address = parts.geturl()
    try:
        status, content = _ask(parts, timeout)
    except _Unreachable as error:
        if as_json:
            typer.echo(json.dumps({"ready": False, "url": address, "error": str(error)}, indent=2))
        else:
            typer.echo(f"Error: No health report from {address}: {one_line(str(error))}", err=True)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    is_ready = status == 200
    if as_json:
        typer.echo(json.dumps({"ready": is_ready, "url": address, **content}, indent=2))
    else:
        typer.echo("\n".join(_lines(is_ready, content)))
    raise typer.Exit(ExitCode.DONE if is_ready else ExitCode.NOT_READY)


def _url_in_settings(files: FileOptions) -> str:
    """Return the URL of the readiness route, according to the settings.

    Settings of the container do not count, because reading them would start half a server.
    """
    from axolotl_cli.serving.address import address_of
    from axolotl_cli.target import resolve_target
    from axolotl_core.errors import ConfigurationError

    settings = resolve_target(None, files=files, is_required=False).settings
    if settings.http.port == 0:
        raise ConfigurationError("http.port is 0, so the port is not known: name the server with --url")
    if not settings.health.enabled:
        raise ConfigurationError("health.enabled is false: name another route with --url")
    return address_of(settings.http, settings.http.port) + _DEFAULT_PATH


def _parsed(url: str) -> SplitResult:
    """Add the readiness route to a URL without a path."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a server: write for example http://127.0.0.1:8000")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return parts._replace(path=_DEFAULT_PATH) if parts.path in ("", "/") else parts


class _Unreachable(Exception):
    """The server gave no usable answer; the message explains why."""


def _ask(parts: SplitResult, timeout_seconds: float) -> tuple[int, Mapping[str, Any]]:
    """Return the status and the report; raise `_Unreachable` if no server answers in time, or something else does."""
    try:
        status, body = _exchange(parts, timeout_seconds)
    except TimeoutError:
        raise _Unreachable(f"no answer within {timeout_seconds:g} seconds") from None
    except ConnectionRefusedError:
        raise _Unreachable("connection refused; start the server, or name another address with --url") from None
    except (OSError, HTTPException) as error:
        raise _Unreachable(str(error) or type(error).__name__) from None
    if len(body) > _MAX_BYTES:
        raise _Unreachable(f"the reply has more than {_MAX_BYTES} bytes; are the health routes enabled?")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if status not in _STATUSES or not isinstance(content, dict) or "status" not in content:
        raise _Unreachable(f"the status is {status}; are the health routes enabled?")
    return status, content


def _exchange(parts: SplitResult, timeout_seconds: float) -> tuple[int, bytes]:
    """Return the status and the body; raises TimeoutError if they have not arrived in time.

    The request runs in a thread, because the time limit of a socket begins again with each byte.
    """
    outcomes: list[tuple[int, bytes] | Exception] = []
    sockets: list[socket] = []

    def exchange() -> None:
        target = parts._replace(scheme="", netloc="").geturl()
        try:
            with closing(_connection(parts, timeout_seconds)) as connection:
                connection.connect()
                sockets.append(connection.sock)  # a response that ends with its connection removes it from there
                connection.request("GET", target, headers={"Accept": "application/json"})
                with connection.getresponse() as response:
                    outcomes.append((response.status, response.read(_MAX_BYTES + 1)))
        except Exception as error:
            outcomes.append(error)

    thread = Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    outcome = outcomes[0] if outcomes else TimeoutError()
    if not isinstance(outcome, Exception):
        return outcome
    for one in sockets:
        with suppress(OSError):
            one.shutdown(SHUT_RDWR)  # ends the thread, if it is still reading
    raise outcome


def _connection(parts: SplitResult, timeout_seconds: float) -> HTTPConnection:
    assert parts.hostname is not None
    if parts.scheme == "http":
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout_seconds)
    import ssl

    context = ssl.create_default_context()
    if parts.hostname in _LOOPBACK:  # certificates do not name loopback hosts, and nobody can be in between
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(parts.hostname, parts.port, timeout=timeout_seconds, context=context)


def _lines(is_ready: bool, content: Mapping[str, Any]) -> Iterator[str]:
    """Format the answer, with a line for each check that is not ok."""
    status = content["status"]
    yield one_line("ready" if status == "ok" else f"ready, but {status}") if is_ready else "not ready"
    checks = content.get("checks")
    for name, check in checks.items() if isinstance(checks, dict) else ():
        if isinstance(check, dict) and check.get("status") != "ok":
            reason = f": {check['reason']}" if "reason" in check else ""
            yield one_line(f"  {name} {check.get('status')}{reason}")
