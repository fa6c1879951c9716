"""The address of an HTTP server: its listening socket and URLs."""

import errno
import os
import socket
import sys
from urllib.parse import quote

from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.transports import HttpSettings

_BACKLOG = 2048
_ALL_ADDRESSES = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class UnusableAddress(ConfigurationError):
    """The server cannot listen at its address, and no other code would change that."""


def listen(settings: HttpSettings) -> socket.socket:
    """Open a listening socket."""
    family, address = _resolved(settings)
    # The protocol is explicit, because asyncio sets TCP_NODELAY only if the socket names it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UnusableAddress(_explain(error, settings)) from error
    return listener


def listens_everywhere(settings: HttpSettings) -> bool:
    """Tell whether the server listens on all addresses of the machine."""
    return settings.host in _ALL_ADDRESSES


def url_of(settings: HttpSettings, listener: socket.socket) -> str:
    """Return the URL of the endpoint for clients on this machine."""
    return address_of(settings, listener.getsockname()[1]) + quote(settings.path)


def listening_url(settings: HttpSettings, url: str) -> str:
    """Return the URL of the endpoint with the address that the server listens at, which may be every one."""
    local = _ALL_ADDRESSES.get(settings.host)
    return url if local is None else url.replace(local, settings.host or "0.0.0.0", 1)


def address_of(settings: HttpSettings, port: int) -> str:
    """Return the URL of the server without a path."""
    host = _ALL_ADDRESSES.get(settings.host, settings.host)
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.tls_certificate is None else "https"
    return f"{scheme}://{shown}:{port}"


def _resolved(settings: HttpSettings) -> tuple[int, tuple[object, ...]]:
    # To encode a text, Python would load the rules for international names.
    host = settings.host.encode() if settings.host.isascii() else settings.host
    try:
        found = socket.getaddrinfo(host or None, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UnusableAddress(f"The host {settings.host!r} is unknown: choose another with --host") from error
    family, _, _, _, address = found[0]
    return family, address


def _explain(error: OSError, settings: HttpSettings) -> str:
    where = f"Port {settings.port} on {settings.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use: choose another with --port, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"{where} needs more permissions: choose a port above 1023 with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{settings.host} is not an address of this machine: choose another with --host"
    return f"{where} cannot be used: {os.strerror(error.errno or 0)}"
