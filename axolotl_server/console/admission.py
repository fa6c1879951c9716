"""Who may see the console: pages of the server itself, in a browser on the same machine."""

from collections.abc import Mapping
from typing import Final

from axolotl_server.http.asgi import Scope
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.identity.urls import is_loopback

__all__ = ["CONSOLE_HEADER", "check_local", "check_page_of_ours"]

CONSOLE_HEADER: Final = b"x-axolotl-console"
"""What the page sends with every request for data; a page of somebody else cannot, without being refused first."""

_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")


def check_local(scope: Scope, headers: Mapping[bytes, bytes]) -> None:
    """Refuse a request from elsewhere, through a proxy, or under a name that anybody can have point here.

    Raises:
        HttpRefusal: 403 or 421.
    """
    client = scope.get("client")
    if not client or not is_loopback(client[0]) or any(name in headers for name in _FORWARDED):
        raise HttpRefusal(403, "Forbidden: the console is for the machine that the server runs on; open it there")
    name, _, port = _host_of(headers).rpartition(":")
    if not is_loopback(name if port.isdecimal() else _host_of(headers)):
        raise HttpRefusal(421, "Misdirected request: open the console as localhost, 127.0.0.1 or [::1]")
    origin = headers.get(b"origin")
    if (
        origin is not None
        and origin.decode("latin-1").lower() != f"{scope.get('scheme', 'http')}://{_host_of(headers)}"
    ):
        raise HttpRefusal(403, "Forbidden: the console answers its own page only")


def check_page_of_ours(headers: Mapping[bytes, bytes]) -> None:
    """Refuse what a page of somebody else could make a browser send.

    Raises:
        HttpRefusal: 403.
    """
    site = headers.get(b"sec-fetch-site", b"same-origin")
    if headers.get(CONSOLE_HEADER) is None or site != b"same-origin":
        raise HttpRefusal(403, "Forbidden: the console's data is for its own page, which says so in X-Axolotl-Console")


def _host_of(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(b"host", b"").decode("latin-1").lower()
