"""Getting to know each other: handshake, discovery, ping."""

from collections.abc import Mapping
from typing import Any

from axolotl_core.protocol.identity import Icon, Implementation
from axolotl_core.protocol.versions import STATELESS_REVISIONS, Revision
from axolotl_core.protocol.wire import encode
from axolotl_server.capabilities import TASKS_CAPABILITY, TASKS_EXTENSION
from axolotl_server.eras.base import IEra
from axolotl_server.eras.select import Eras
from axolotl_server.methods.params import InitializeParams, read_params
from axolotl_server.request import Request
from axolotl_server.settings import ServerIdentity

__all__ = ["Discovery", "Handshake", "identity_of", "ping"]


def identity_of(settings: ServerIdentity) -> Implementation:
    """Say who the server is."""
    icons = tuple(Icon(icon.src, icon.mime_type, icon.sizes, icon.theme) for icon in settings.icons)
    said = (settings.title, settings.description, settings.website_url)
    return Implementation(settings.name, settings.version, *said, icons or None)


async def ping(request: Request) -> bytes:
    """Answer that the server is there."""
    return b"{}"


class Handshake:
    """`initialize`: agree on a revision and remember who called."""

    def __init__(self, settings: ServerIdentity, capabilities: Mapping[str, Any]) -> None:
        self._settings = settings
        self._capabilities = capabilities
        self.eras: Eras
        """Set once all eras are there, of which each has this method in its table."""

    async def initialize(self, request: Request) -> bytes:
        """Begin a connection."""
        params = read_params(request.data, InitializeParams)
        era = self.eras.negotiate(params.protocol_version)
        connection = request.exchange.open_connection()
        connection.era, connection.client = era, params.client_info
        connection.capabilities = params.capabilities
        return self._result(era)

    def _result(self, era: IEra) -> bytes:
        identity = identity_of(self._settings)
        revision = era.revision
        info = {"name": identity.name, "version": identity.version}
        if revision.titles and identity.title is not None:
            info["title"] = identity.title
        result: dict[str, Any] = {
            "protocolVersion": revision.name,
            "capabilities": self._capabilities_in(revision),
            "serverInfo": identity if revision.icons else info,
        }
        if self._settings.instructions is not None:
            result["instructions"] = self._settings.instructions
        return encode(result)

    def _capabilities_in(self, revision: Revision) -> Mapping[str, Any]:
        """Name tasks in the way of the revision; only one of those with a handshake has them."""
        extensions = dict(self._capabilities.get("extensions", {}))
        if extensions.pop(TASKS_EXTENSION, None) is None:
            return self._capabilities
        others = {name: value for name, value in self._capabilities.items() if name != "extensions"}
        if extensions:
            others["extensions"] = extensions
        return {**others, "tasks": TASKS_CAPABILITY} if revision.tasks else others


class Discovery:
    """`server/discover`: what a stateless client may ask."""

    def __init__(self, settings: ServerIdentity, capabilities: Mapping[str, Any]) -> None:
        result: dict[str, Any] = {
            "supportedVersions": [revision.name for revision in STATELESS_REVISIONS],
            "capabilities": capabilities,
        }
        if settings.instructions is not None:
            result["instructions"] = settings.instructions
        self._head = encode(result)[:-1]

    async def discover(self, request: Request) -> bytes:
        """Answer with what is known since the start."""
        return self._head + request.era.list_tail
