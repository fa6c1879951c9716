"""`resources/list`, `resources/templates/list`, `resources/read`, and watching a resource in the older revisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axolotl_core.errors import InvalidArguments, InvalidParams, ResourceNotFound, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyResource, ResourceRegistry
from axolotl_core.resources.resource import CacheHint, IResource, IResourceTemplate, ResourceContents, screen
from axolotl_server.calls.binding import Binder, Binding, EncodeOutput
from axolotl_server.calls.feature_method import ErrorFeatureMethod, InFlight
from axolotl_server.eras.presentation import contents_for, resource_definition
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.completion import Completing, encode_completion
from axolotl_server.messages.params import ListParams, ResourceParams, read_params
from axolotl_server.messages.request import Request
from axolotl_server.settings.calls import CachingSettings
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_core.resources.uri_template import UriTemplate
    from axolotl_server.authorization.authorization import Authorization


@dataclass(frozen=True, slots=True, eq=False)
class ResourceBinding(Binding[FeatureSpec]):
    """All that a read of one resource needs."""

    resource: IResource


@dataclass(frozen=True, slots=True, eq=False)
class TemplateBinding(Binding[FeatureSpec]):
    """All that a read through one template needs, and what completes its variables."""

    resource: IResourceTemplate[Any]
    template: "UriTemplate"
    completion: Binding[FeatureSpec]

    def values_in(self, uri: str) -> bytes | None:
        """Read the variables of a URI; None if it is none of the template, or leads out of its place."""
        values = self.template.match(uri)
        if values is None or screen(values, self.resource.unscreened) is not None:
            return None
        return encode(values)


class ResourceCatalogue(Catalogue[IResource, ResourceBinding]):
    """Finds resources by their URI and lists them."""

    field = "resources"
    listed_by = "resources"

    def __init__(
        self,
        registry: ResourceRegistry,
        binder: Binder,
        settings: ServerSettings,
        authorization: "Authorization | None" = None,
    ) -> None:
        self._resources = registry
        self._binder = binder
        self._caching = settings.caching
        self._by_uri: Mapping[str, ResourceBinding] = {}
        super().__init__(registry, settings, authorization)

    def find(self, uri: str) -> ResourceBinding | None:
        """Find a resource."""
        return self._by_uri.get(uri)

    def items(self) -> Iterable[IResource]:
        """Serve what has a fixed URI."""
        return (one for one in self._resources.get_all() if isinstance(one, IResource))

    def compile(self, item: IResource) -> ResourceBinding:
        """Make a resource ready."""
        encode = _contents_encoder(item, self._caching, self.authorization is not None)
        bound = self._binder.bind(item, "resource", item.uri, encode)
        return ResourceBinding(bound.spec, bound.invoke, bound.encode, bound.layers, bound.max_result_bytes, item)

    def describe(self, binding: ResourceBinding, revision: Revision) -> dict[str, Any]:
        """Describe a resource."""
        return resource_definition(binding.resource, revision)

    def index(self, bindings: Sequence[ResourceBinding]) -> None:
        """Find resources by URI."""
        self._by_uri = {binding.resource.uri: binding for binding in bindings}


class TemplateCatalogue(Catalogue[IResourceTemplate[Any], TemplateBinding]):
    """Finds the template that a URI was made of, the most specific first, and lists them."""

    field = "resourceTemplates"
    listed_by = "resources/templates"

    def __init__(
        self,
        registry: ResourceRegistry,
        binder: Binder,
        settings: ServerSettings,
        authorization: "Authorization | None" = None,
    ) -> None:
        self._resources = registry
        self._binder = binder
        self._caching = settings.caching
        self._by_specificity: Sequence[TemplateBinding] = ()
        super().__init__(registry, settings, authorization)

    def find(self, uri: str) -> tuple[TemplateBinding, bytes] | None:
        """Find the template of a URI, and the variables in it."""
        for binding in self._by_specificity:
            values = binding.values_in(uri)
            if values is not None:
                return binding, values
        return None

    def named(self, text: str) -> TemplateBinding | None:
        """Find a template by its text, or by a URI that it makes."""
        exact = next((one for one in self._by_specificity if one.template.text == text), None)
        found = self.find(text) if exact is None else None
        return found[0] if found is not None else exact

    def items(self) -> Iterable[IResourceTemplate[Any]]:
        """Serve what has variables."""
        return (one for one in self._resources.get_all() if isinstance(one, IResourceTemplate))

    def compile(self, item: IResourceTemplate[Any]) -> TemplateBinding:
        """Make a template ready."""
        from axolotl_core.resources.uri_template import UriTemplate  # servers without templates start faster without it

        name = item.uri_template
        encode = _contents_encoder(item, self._caching, self.authorization is not None)
        bound = self._binder.bind(item, "resource", name, encode)
        completing = Completing(item, bound.spec)
        completion = self._binder.bind(completing, "completion", name, encode_completion)
        return TemplateBinding(
            bound.spec,
            bound.invoke,
            bound.encode,
            bound.layers,
            bound.max_result_bytes,
            item,
            UriTemplate(name),
            completion,
        )

    def describe(self, binding: TemplateBinding, revision: Revision) -> dict[str, Any]:
        """Describe a template."""
        return resource_definition(binding.resource, revision)

    def index(self, bindings: Sequence[TemplateBinding]) -> None:
        """Try the most specific first; of equal ones, the one that was registered first."""
        self._by_specificity = sorted(bindings, key=lambda binding: binding.template.specificity)


def _contents_encoder(resource: AnyResource, caching: CachingSettings, guarded: bool) -> EncodeOutput:
    own = resource.cache
    if guarded:
        # A shared cache asks nobody who may read: where somebody has to be asked, it must not have the answer.
        own = CacheHint(caching.resource_ttl_seconds if own is None else own.ttl_seconds, "private")
    shared = own or CacheHint(caching.resource_ttl_seconds, caching.scope)
    personal = own or CacheHint(caching.resource_ttl_seconds, "private")

    def encode_contents(output: ResourceContents, request: Request) -> bytes:
        era = request.era
        body = encode([contents_for(one, era.revision) for one in output])
        if request.rounds is not None:
            hint = CacheHint(0, "private")  # what a caller was asked for is nobody else's
        else:
            hint = shared if request.exchange.principal == ANONYMOUS else personal
        return b'{"contents":%b%b' % (body, era.kept_tail(hint))

    return encode_contents


class ResourceMethods(ErrorFeatureMethod):
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
