"""`resources/list`, `resources/templates/list`, `resources/read`, and watching a resource in the older revisions."""

from axolotl_core.errors import InvalidArguments, InvalidParams, ResourceNotFound, ToolError
from axolotl_core.spec import FeatureSpec
from axolotl_server.binding import Binding
from axolotl_server.catalogues.resources import ResourceCatalogue, TemplateCatalogue
from axolotl_server.inflight import InFlight
from axolotl_server.methods.params import ListParams, ResourceParams, read_params
from axolotl_server.methods.told import ErrorTelling
from axolotl_server.request import Request

__all__ = ["ResourceMethods"]


class ResourceMethods(ErrorTelling):
    """Lists resources, reads them, and remembers who watches which."""

    def __init__(
        self, resources: ResourceCatalogue, templates: TemplateCatalogue, inflight: InFlight, max_watched: int
    ) -> None:
        super().__init__(inflight)
        self._resources = resources
        self._templates = templates
        self._max_watched = max_watched

    async def list(self, request: Request) -> bytes:
        """Give a page of the list of resources with a fixed URI."""
        cursor = read_params(request.data, ListParams).cursor
        return await self._resources.page(request.era, cursor, request.exchange.principal)

    async def list_templates(self, request: Request) -> bytes:
        """Give a page of the list of templates."""
        cursor = read_params(request.data, ListParams).cursor
        return await self._templates.page(request.era, cursor, request.exchange.principal)

    def find(self, request: Request) -> tuple[Binding[FeatureSpec], bytes, str]:
        """Find what is behind a URI: a resource, or else a template that makes such URIs."""
        uri = read_params(request.data, ResourceParams).uri
        fixed = self._resources.find(uri)
        if fixed is not None:
            return fixed, b"{}", uri
        found = self._templates.find(uri)
        if found is None:
            raise ResourceNotFound(uri)
        return found[0], found[1], uri

    def tell(self, error: ToolError, request: Request) -> bytes:
        """Variables that no resource can have mean that there is none."""
        if isinstance(error, InvalidArguments):
            raise ResourceNotFound(read_params(request.data, ResourceParams).uri) from None
        return super().tell(error, request)

    async def subscribe(self, request: Request) -> bytes:
        """Let a client hear of changes of a resource."""
        uri = read_params(request.data, ResourceParams).uri
        if self._resources.find(uri) is None and self._templates.find(uri) is None:
            raise ResourceNotFound(uri)
        assert request.connection is not None
        watched = request.connection.subscriptions
        if uri not in watched and len(watched) >= self._max_watched:
            raise InvalidParams(f"Too many subscriptions: one client may watch {self._max_watched} resources")
        watched.add(uri)
        return b"{}"

    async def unsubscribe(self, request: Request) -> bytes:
        """Let it hear no more."""
        uri = read_params(request.data, ResourceParams).uri
        assert request.connection is not None
        request.connection.subscriptions.discard(uri)
        return b"{}"
