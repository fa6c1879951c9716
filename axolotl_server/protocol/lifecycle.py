"""The handshake, discovery, `ping`, `logging/setLevel`, and the capabilities of the server."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from axolotl_core.content import APP_EXTENSION
from axolotl_core.errors import InvalidParams
from axolotl_core.protocol.identity import Icon, Implementation
from axolotl_core.protocol.messages import LEVELS
from axolotl_core.protocol.versions import STATELESS_REVISIONS, Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyTool
from axolotl_server.extension import Extension
from axolotl_server.protocol.connection import MAX_CLIENT_BYTES
from axolotl_server.protocol.eras.era import Eras, IEra
from axolotl_server.protocol.params import InitializeParams, LevelParams, read_params
from axolotl_server.protocol.request import Request
from axolotl_server.settings.server import ServerIdentity


def capabilities_of(
    offers: Collection[str], extensions: Iterable[Extension], tools: Iterable[AnyTool], revision: Revision
) -> dict[str, Any]:
    """Make the capabilities of a server that offers these kinds of features, for the clients of a revision."""
    capabilities: dict[str, Any] = {"logging": {}}
    for kind in ("tools", "prompts", "resources"):
        if kind in offers:
            capabilities[kind] = {"listChanged": True}
    if "resources" in offers:
        capabilities["resources"]["subscribe"] = True
    if "prompts" in offers or "resources" in offers:
        capabilities["completions"] = {}
    announced: dict[str, Any] = {}
    for extension in extensions:
        added = dict(extension.capabilities(revision))
        announced |= added.pop("extensions", {})
        capabilities |= added
    if any(tool.app is not None for tool in tools):
        announced.setdefault(APP_EXTENSION, {})
    if announced:
        capabilities["extensions"] = announced
    return capabilities


async def set_level(request: Request) -> bytes:
    """Set the lowest level of the log messages that the client wants."""
    level = read_params(request.data, LevelParams).level
    if level not in LEVELS:
        raise InvalidParams(f'Invalid params: "level" must be one of {", ".join(LEVELS)}')
    assert request.connection is not None
    request.connection.log_level = level
    return b"{}"


def identity_of(settings: ServerIdentity) -> Implementation:
    """Make the identity of the server."""
    icons = tuple(Icon(icon.src, icon.mime_type, icon.sizes, icon.theme) for icon in settings.icons)
    optional = (settings.title, settings.description, settings.website_url)
    return Implementation(settings.name, settings.version, *optional, icons or None)


async def ping(request: Request) -> bytes:
    """Answer that the server is alive."""
    return b"{}"


async def initialized(request: Request) -> None:
    """Note that the client has confirmed the handshake."""
    assert request.connection is not None
    request.connection.initialized = request.connection.era is not None


class Handshake:
    """`initialize`: agrees on a revision with a client."""

    def __init__(
        self,
        settings: ServerIdentity,
        capabilities: Mapping[Revision, Mapping[str, Any]],
        eras: Callable[[], Eras],
    ) -> None:
        """Take a function that returns the eras: each of them has this method in its table."""
        self._settings = settings
        self._capabilities = capabilities
        self._eras = eras

    async def initialize(self, request: Request) -> bytes:
        if len(request.data) > MAX_CLIENT_BYTES:
            raise InvalidParams(
                f"Invalid params: initialize has {len(request.data)} bytes, but at most {MAX_CLIENT_BYTES} are "
                "allowed; send less about the client"
            )
        params = read_params(request.data, InitializeParams)
        era = self._eras().negotiate(params.protocol_version)
        connection = request.exchange.open_connection()
        connection.era, connection.client_data = era, encode(params.client_info)
        connection.capability_data = encode(params.capabilities)
        return self._result(era)

    def _result(self, era: IEra) -> bytes:
        identity = identity_of(self._settings)
        revision = era.revision
        info = {"name": identity.name, "version": identity.version}
        if revision.titles and identity.title is not None:
            info["title"] = identity.title
        result: dict[str, Any] = {
            "protocolVersion": revision.name,
            "capabilities": self._capabilities[revision],
            "serverInfo": identity if revision.icons else info,
        }
        if self._settings.instructions is not None:
            result["instructions"] = self._settings.instructions
        return encode(result)


class Discovery:
    """`server/discover`: tells a stateless client what the server offers."""

    def __init__(self, settings: ServerIdentity, capabilities: Mapping[str, Any]) -> None:
        result: dict[str, Any] = {
            "supportedVersions": [revision.name for revision in STATELESS_REVISIONS],
            "capabilities": capabilities,
        }
        if settings.instructions is not None:
            result["instructions"] = settings.instructions
        self._head = encode(result)[:-1]

    async def discover(self, request: Request) -> bytes:
        return self._head + request.era.list_tail
