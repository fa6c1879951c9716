"""Checks of a request's headers, made before its body is read."""

import re
from collections.abc import Mapping
from typing import Final

from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.settings.transports import HttpSettings
from axolotl_server.urls import hosts_of

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::[0-9]{1,5})?")
_ORIGIN: Final = re.compile(r"https?://(?P<authority>[^/?#@]+)")
_REMEMBERED: Final = 256


class HeaderChecks:
    """Checks Host and Origin against the allowed ones, and Content-Type and Accept against the supported ones."""

    def __init__(self, settings: HttpSettings, resource: str | None = None) -> None:
        own = settings.host if ":" not in settings.host else f"[{settings.host}]"
        self._hosts = {*_LOOPBACK, own.lower(), *(host.lower() for host in settings.allowed_hosts)}
        self._public = frozenset() if resource is None else hosts_of(resource)
        """The public name of the server, with its port: unlike the others, it does not match every port."""
        self._any_host = "*" in settings.allowed_hosts
        self._origins = {origin.lower() for origin in settings.allowed_origins}
        self._sources: set[tuple[bytes | None, ...]] = set()
        """Combinations of Host and Origin that were accepted and need no second check."""
        self._media: set[tuple[bytes | None, ...]] = set()
        """The same for Content-Type and Accept."""

    def check_source(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request for another Host with 421, and one from a page of another Origin with 403."""
        source = headers.get(b"host"), headers.get(b"origin")
        if source in self._sources:
            return
        if not self._is_host(headers.get(b"host", b"")):
            raise HttpRefusal(421, "Misdirected request: this Host is not served; add it to http.allowed_hosts")
        origin = headers.get(b"origin")
        if origin is not None and not self._is_origin(origin):
            raise HttpRefusal(403, "Forbidden: this Origin is not allowed; add it to http.allowed_origins")
        if len(self._sources) < _REMEMBERED:
            self._sources.add(source)

    def check_media(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a message that is not declared as JSON with 415, and one whose client takes no JSON with 406."""
        media = headers.get(b"content-type"), headers.get(b"accept")
        if media in self._media:
            return
        self.check_content(headers)
        if not accepts(headers.get(b"accept", b"*/*"), b"application/json"):
            raise HttpRefusal(406, "Not acceptable: send Accept: application/json, text/event-stream")
        if len(self._media) < _REMEMBERED:
            self._media.add(media)

    def allows_pages_of(self, origin: bytes) -> bool:
        """Whether the settings name an origin as allowed."""
        return origin.decode("latin-1").lower() in self._origins

    def check_content(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a body that is not declared as JSON with 415."""
        if not _names_json(headers.get(b"content-type", b"")):
            raise HttpRefusal(415, "Unsupported media type: send Content-Type: application/json")

    def _is_host(self, value: bytes) -> bool:
        match = _HOST.fullmatch(value.decode("latin-1").lower())
        if match is None:
            return False
        return self._any_host or match["host"] in self._hosts or match[0] in self._hosts or match[0] in self._public

    def _is_origin(self, value: bytes) -> bool:
        origin = value.decode("latin-1").lower()
        if origin in self._origins:
            return True
        match = _ORIGIN.fullmatch(origin)
        authority = _HOST.fullmatch(match["authority"]) if match else None
        return authority is not None and authority["host"] in _LOOPBACK


def accepts(header: bytes, wanted: bytes) -> bool:
    """Whether an Accept header admits a media type."""
    kind = wanted.partition(b"/")[0] + b"/*"
    offered = (part.partition(b";")[0].strip().lower() for part in header.split(b","))
    return any(media in (wanted, kind, b"*/*") for media in offered)


def _names_json(value: bytes) -> bool:
    media, _, parameters = value.lower().partition(b";")
    return media.strip() == b"application/json" and b"charset" not in parameters.replace(b"charset=utf-8", b"")
