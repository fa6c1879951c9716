"""The address of an HTTP server: taken before anything is promised."""

import errno
import os
import socket
import sys
from urllib.parse import quote

from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.transports import HttpSettings

_BACKLOG = 2048
_ANYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def listen(settings: HttpSettings) -> socket.socket:
    """Take the address.

    Raises:
        ConfigurationError: if it is taken, or is none of this machine.
    """
    family, address = _resolved(settings)
    # The protocol is named, because asyncio sends small replies at once only on sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(_explain(error, settings)) from error
    return listener


def is_everywhere(settings: HttpSettings) -> bool:
    """Tell whether the server listens at all addresses of the machine."""
    return settings.host in _ANYWHERE


def url_of(settings: HttpSettings, listener: socket.socket) -> str:
    """Give the URL that a client on this machine can use."""
    return address_of(settings, listener.getsockname()[1]) + quote(settings.path)


def address_of(settings: HttpSettings, port: int) -> str:
    """Give the URL of the server itself, as far as its paths."""
    host = _ANYWHERE.get(settings.host, settings.host)
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.tls_certificate is None else "https"
    return f"{scheme}://{shown}:{port}"


def _resolved(settings: HttpSettings) -> tuple[int, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(
            settings.host or None, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"There is no host {settings.host!r}: choose another with --host") from error
    family, _, _, _, address = found[0]
    return family, address


def _explain(error: OSError, settings: HttpSettings) -> str:
    where = f"Port {settings.port} at {settings.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is taken: choose another with --port, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"{where} may not be used by this user: choose one above 1023 with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{settings.host} is no address of this machine: choose another with --host"
    return f"{where} cannot be used: {os.strerror(error.errno or 0)}"
