"""Health requests to a running server, made with the standard library only."""

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from axolotl_cli.arguments import FileOptions


def health_url(files: FileOptions) -> str:
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
    return address_of(settings.http, settings.http.port) + DEFAULT_PATH


DEFAULT_PATH: Final = "/readyz"

_STATUSES: Final = (200, 503)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_BYTES: Final = 64 * 1024


class Unreachable(Exception):
    """The server gave no usable answer; the message explains why."""


class NoHealthRoute(Unreachable):
    """Something answered, but not with a health report."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """The answer of a server."""

    is_ready: bool
    content: Mapping[str, Any]


def full_url(url: str) -> str:
    """Add the readiness route to a URL without a path; raise `ValueError` if it is not a URL of a server."""
    parts = _parsed(url)
    return parts._replace(path=DEFAULT_PATH).geturl() if parts.path in ("", "/") else url


def ask_health(url: str, timeout_seconds: float) -> HealthAnswer:
    """Send a health request; raise `Unreachable` if no server answers in time, or something else does."""
    probe = _Probe(_parsed(url), timeout_seconds)
    try:
        status, body = probe.ask()
    except TimeoutError:
        raise Unreachable(f"no answer within {timeout_seconds:g} seconds") from None
    except ConnectionRefusedError:
        raise Unreachable("connection refused; start the server, or name another address with --url") from None
    except (OSError, HTTPException) as error:
        raise Unreachable(str(error) or type(error).__name__) from None
    return HealthAnswer(status == 200, _read(status, body))


class _Probe(Thread):
    """One request with a deadline, in a thread: the time limit of a socket begins again with each byte."""

    def __init__(self, parts: SplitResult, timeout_seconds: float) -> None:
        super().__init__(daemon=True)
        self._parts = parts
        self._timeout_seconds = timeout_seconds
        self._socket: socket | None = None
        self._outcome: tuple[int, bytes] | Exception = TimeoutError()

    def ask(self) -> tuple[int, bytes]:
        """Return the status and the body; raises TimeoutError if they have not arrived in time."""
        self.start()
        self.join(self._timeout_seconds)
        outcome = self._outcome
        if isinstance(outcome, Exception):
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(SHUT_RDWR)  # ends the thread, if it is still reading
            raise outcome
        return outcome

    def run(self) -> None:
        try:
            self._outcome = self._exchange()
        except Exception as error:
            self._outcome = error

    def _exchange(self) -> tuple[int, bytes]:
        target = self._parts._replace(scheme="", netloc="").geturl()
        with closing(_connection(self._parts, self._timeout_seconds)) as connection:
            connection.connect()
            self._socket = connection.sock  # a response that ends with its connection removes it from there
            connection.request("GET", target, headers={"Accept": "application/json"})
            with connection.getresponse() as response:
                return response.status, response.read(_MAX_BYTES + 1)


def _parsed(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not the URL of a server: write for example http://127.0.0.1:8000")
    _ = parts.port  # raises ValueError if it is not a number
    return parts


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


def _read(status: int, body: bytes) -> Mapping[str, Any]:
    if len(body) > _MAX_BYTES:
        raise NoHealthRoute(f"the reply has more than {_MAX_BYTES} bytes; are the health routes enabled?")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if status not in _STATUSES or not isinstance(content, dict) or "status" not in content:
        raise NoHealthRoute(f"the status is {status}; are the health routes enabled?")
    return content
