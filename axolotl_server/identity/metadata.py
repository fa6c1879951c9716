"""Where clients learn which authorization server has tokens for this server (RFC 9728)."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from axolotl_core.protocol.wire import encode
from axolotl_server.http.asgi import Receive, Scope, Send
from axolotl_server.http.premises import Route
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import Headers, send_empty, send_json
from axolotl_server.identity.settings import AuthSettings
from axolotl_server.identity.urls import canonical
from axolotl_server.settings import ServerSettings

__all__ = ["metadata_routes", "metadata_url"]

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_OPEN_TO_PAGES: Final[Headers] = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: Final[Headers] = [
    *_OPEN_TO_PAGES,
    (b"access-control-allow-methods", b"GET"),
    (b"access-control-allow-headers", b"MCP-Protocol-Version, Accept"),
    (b"access-control-max-age", b"3600"),
]


def metadata_url(settings: AuthSettings) -> str | None:
    """Give the URL of the metadata, None where there is nothing to say in it."""
    if settings.resource is None or not settings.servers:
        return None
    parts = urlsplit(canonical(settings.resource))
    return f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{parts.path.rstrip('/')}"


def metadata_routes(settings: ServerSettings) -> dict[str, Route]:
    """Make the routes: the path of the resource after the well-known one, and the well-known one alone."""
    auth = settings.auth
    if auth.resource is None or not auth.servers:
        return {}
    resource = canonical(auth.resource)
    said = {
        "resource": resource,
        "authorization_servers": auth.servers,
        "bearer_methods_supported": ["header"],
        "resource_name": settings.server.title or settings.server.name,
        **({"scopes_supported": auth.required_scopes} if auth.required_scopes else {}),
    }
    route = Route(_Metadata(encode(said)), is_open=True)
    paths = {urlsplit(resource).path.rstrip("/"), settings.http.path.rstrip("/"), ""}
    return {f"{_WELL_KNOWN}{path}": route for path in paths}


class _Metadata:
    """Answers whoever asks: there is no secret in it, and who asks has no token yet."""

    def __init__(self, document: bytes) -> None:
        self._document = document

    async def __call__(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await send_empty(send, 204, _PREFLIGHT)
        elif scope["method"] == "GET":
            await send_json(send, 200, self._document, [*_OPEN_TO_PAGES, (b"cache-control", b"max-age=300")])
        else:
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[(b"allow", b"GET")])
