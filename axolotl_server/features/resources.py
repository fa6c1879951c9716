"""`resources/list`, `resources/templates/list`, `resources/read`, and subscriptions with a handshake."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from axolotl_core.errors import InvalidArguments, InvalidParams, ProtocolError, ResourceNotFound, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyResource
from axolotl_core.resources.resource import CacheHint, IResource, IResourceTemplate, ResourceContents, screen
from axolotl_server.calls.binding import Binding, EncodeOutput
from axolotl_server.calls.feature_method import ErrorFeatureMethod, InFlight, RequestTarget
from axolotl_server.eras.presentation import contents_for, resource_definition
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.completion import CompletionFeature, encode_completion
from axolotl_server.messages.params import ResourceParams, read_params
from axolotl_server.messages.request import Request
from axolotl_server.settings.calls import CachingSettings

if TYPE_CHECKING:
    from axolotl_core.resources.uri_template import UriTemplate


class ResourceCatalogue(Catalogue[IResource, FeatureSpec]):
    """Finds resources by URI and lists them."""

    field = "resources"
    method_prefix = "resources"

    _by_uri: Mapping[str, Binding[FeatureSpec]]

    def find(self, uri: str) -> Binding[FeatureSpec] | None:
        """Find the resource with a URI."""
        return self._by_uri.get(uri)

    def served(self, registered: Iterable[AnyResource]) -> Iterable[IResource]:
        return (one for one in registered if isinstance(one, IResource))

    def compile(self, item: IResource) -> Binding[FeatureSpec]:
        encode = _contents_encoder(item, self._settings.caching, self.authorization is not None)
        return self._binder.bind(item, "resource", item.uri, encode)

    def describe(self, binding: Binding[FeatureSpec], revision: Revision) -> dict[str, Any]:
        return resource_definition(cast("AnyResource", binding.spec.feature), revision)

    def index(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        self._by_uri = {binding.spec.name: binding for binding in bindings}


class TemplateCatalogue(Catalogue[IResourceTemplate[Any], FeatureSpec]):
    """Finds the template that matches a URI, the most specific first, and lists templates."""

    field = "resourceTemplates"
    method_prefix = "resources/templates"

    _by_specificity: Sequence[Binding[FeatureSpec]]

    def find(self, uri: str) -> tuple[Binding[FeatureSpec], bytes] | None:
        """Find the template that matches a URI, with the values of its variables."""
        for binding in self._by_specificity:
            values = _template_of(binding).match(uri)
            unscreened = cast("IResourceTemplate[Any]", binding.spec.feature).unscreened
            if values is not None and screen(values, unscreened) is None:
                return binding, encode(values)
        return None

    def find_template(self, text: str) -> Binding[FeatureSpec] | None:
        """Find a template by its text, or by a URI that it matches."""
        exact = next((one for one in self._by_specificity if one.spec.name == text), None)
        found = self.find(text) if exact is None else None
        return found[0] if found is not None else exact

    def served(self, registered: Iterable[AnyResource]) -> Iterable[IResourceTemplate[Any]]:
        return (one for one in registered if isinstance(one, IResourceTemplate))

    def compile(self, item: IResourceTemplate[Any]) -> Binding[FeatureSpec]:
        from axolotl_core.resources.uri_template import UriTemplate  # servers without templates start faster without it

        name = item.uri_template
        encode = _contents_encoder(item, self._settings.caching, self.authorization is not None)
        bound = self._binder.bind(item, "resource", name, encode)
        completing = CompletionFeature(item, bound.spec)
        completion = self._binder.bind(completing, "completion", name, encode_completion)
        return replace(bound, completion=completion, template=UriTemplate(name))

    def describe(self, binding: Binding[FeatureSpec], revision: Revision) -> dict[str, Any]:
        return resource_definition(cast("AnyResource", binding.spec.feature), revision)

    def index(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        # The order is stable: of equally specific templates, the one that was registered first comes first.
        self._by_specificity = sorted(bindings, key=lambda binding: _template_of(binding).specificity)


def _template_of(binding: Binding[FeatureSpec]) -> "UriTemplate":
    assert binding.template is not None
    return binding.template


def _contents_encoder(resource: AnyResource, caching: CachingSettings, guarded: bool) -> EncodeOutput:
    own = resource.cache
    if guarded:
        # Where access is restricted, a shared cache must not answer, because it does not check who reads.
        own = CacheHint(caching.resource_ttl_seconds if own is None else own.ttl_seconds, "private")
    shared = own or CacheHint(caching.resource_ttl_seconds, caching.scope)
    personal = own or CacheHint(caching.resource_ttl_seconds, "private")

    def encode_contents(output: ResourceContents, request: Request) -> bytes:
        era = request.era
        body = encode([contents_for(one, era.revision) for one in output])
        if request.rounds is not None:
            hint = CacheHint(0, "private")  # the contents depend on the answers of one caller
        else:
            hint = shared if request.exchange.principal == ANONYMOUS else personal
        return b'{"contents":%b%b' % (body, era.cacheable_tail(hint))

    return encode_contents


class ResourceMethods(ErrorFeatureMethod):
    """Reads resources, and subscribes to them."""

    def __init__(
        self, resources: ResourceCatalogue, templates: TemplateCatalogue, inflight: InFlight, maximum: int
    ) -> None:
        super().__init__(inflight)
        self._resources = resources
        self._templates = templates
        self._maximum = maximum

    def locate(self, request: Request) -> RequestTarget:
        return self.at_uri(read_params(request.data, ResourceParams).uri)

    def at_uri(self, uri: str) -> RequestTarget:
        """Find the resource with a URI, or the template that matches it.

        A resource comes before a template, and a more specific template before another, whether the principal may read
        it or not: what is denied must not be readable through a template.
        """
        fixed = self._resources.find(uri)
        if fixed is not None:
            return RequestTarget(fixed, uri=uri)
        binding, variables = self._templates.find(uri) or (None, b"{}")
        return RequestTarget(binding, variables, uri, needs_check=binding is None)

    async def not_found(self, request: Request) -> ProtocolError:
        return ResourceNotFound(read_params(request.data, ResourceParams).uri)

    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        # Variables that are not valid mean that there is no such resource.
        if isinstance(error, InvalidArguments):
            raise ResourceNotFound(read_params(request.data, ResourceParams).uri) from None
        return super().reply_to_failure(error, request)

    async def subscribe(self, request: Request) -> bytes:
        """Notify a client of changes of a resource from now on."""
        target = request.target or self.locate(request)
        uri = target.uri
        if target.binding is None:
            raise ResourceNotFound(uri)
        assert request.connection is not None
        subscribed = request.connection.subscriptions
        if uri not in subscribed and len(subscribed) >= self._maximum:
            raise InvalidParams(f"Too many subscriptions: a client may subscribe to {self._maximum} resources")
        subscribed.add(uri)
        return b"{}"

    async def unsubscribe(self, request: Request) -> bytes:
        """Stop notifying a client of changes of a resource."""
        uri = read_params(request.data, ResourceParams).uri
        assert request.connection is not None
        request.connection.subscriptions.discard(uri)
        return b"{}"
