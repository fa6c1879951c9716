"""`resources/list`, `resources/templates/list`, `resources/read`, and subscriptions with a handshake."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from axolotl_core.errors import InvalidArguments, InvalidParams, ProtocolError, ResourceNotFound, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyResource
from axolotl_core.resources.resource import CacheHint, IResource, IResourceTemplate, ResourceContents, screen
from axolotl_core.resources.uri_form import MAX_URI_CHARACTERS, bare_key, canonical_uri, is_plain, uri_key
from axolotl_server.calls.binding import Binding, EncodeOutput
from axolotl_server.calls.feature_method import ErrorFeatureMethod, RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.completion import CompletionFeature, encode_completion
from axolotl_server.protocol.connection import MAX_RESOURCES
from axolotl_server.protocol.eras.presentation import contents_for, resource_definition
from axolotl_server.protocol.params import ResourceParams, read_params
from axolotl_server.protocol.request import Request
from axolotl_server.settings.calls import CachingSettings

if TYPE_CHECKING:
    from axolotl_core.resources.uri_template import UriTemplate


class ResourceCatalogue(Catalogue[IResource, FeatureSpec]):
    """Finds resources by URI and lists them."""

    field = "resources"
    method_prefix = "resources"

    _by_uri: Mapping[str, Binding[FeatureSpec]]
    _keys: frozenset[str]
    _longer: tuple[str, ...]
    """The beginnings of keys that have more parameters than a resource with parameters."""

    def find(self, canonical: str) -> Binding[FeatureSpec] | None:
        """Find the resource with a canonical URI."""
        return self._by_uri.get(canonical)

    def contains(self, key: str) -> bool:
        """Tell whether a resource has a URI with this key."""
        return key in self._keys

    def claims(self, canonical: str, key: str, template: str) -> bool:
        """Tell whether a URI is that of a resource with a query, fragment or parameters that a template lets through.

        A template that begins with the URI of the resource, such as `docs://plan{?tab}`, was written for them.
        """
        if is_plain(canonical, key):
            return False
        bare = bare_key(canonical)
        return key.startswith(self._longer) or (bare in self._keys and bare_key(template.partition("{")[0]) != bare)

    def served(self, registered: Iterable[AnyResource]) -> Iterable[IResource]:
        return (one for one in registered if isinstance(one, IResource))

    def compile(self, item: IResource) -> Binding[FeatureSpec]:
        encode = _contents_encoder(item, self._settings.caching, self.authorization is not None)
        return self._binder.bind(item, item._kind, item.uri, encode)

    def describe(self, binding: Binding[FeatureSpec], revision: Revision) -> dict[str, Any]:
        return resource_definition(cast("AnyResource", binding.spec.feature), revision)

    def index(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        self._by_uri = {canonical_uri(one.spec.name) or one.spec.name: one for one in bindings}
        self._keys = frozenset(map(uri_key, self._by_uri))
        parameterized = self._keys - frozenset(map(bare_key, self._by_uri))
        self._longer = tuple(key + mark for key in parameterized for mark in "&;#")


class TemplateCatalogue(Catalogue[IResourceTemplate[Any], FeatureSpec]):
    """Finds the template that matches a URI, the most specific first, and lists templates."""

    field = "resourceTemplates"
    method_prefix = "resources/templates"

    _by_specificity: Sequence[Binding[FeatureSpec]]

    def find(self, canonical: str, key: str) -> tuple[Binding[FeatureSpec], bytes] | None:
        """Find the template that matches a canonical URI with a key, and the values of its variables.

        There is none if a value attempts path traversal, or if another template also claims the URI in some spelling.
        """
        for place, binding in enumerate(self._by_specificity):
            values = _template_of(binding).match(canonical)
            if values is not None:
                unscreened = cast("IResourceTemplate[Any]", binding.spec.feature).unscreened
                refused = screen(values, unscreened) is not None or not (
                    is_plain(canonical, key) or self._is_owner(key, place)
                )
                return None if refused else (binding, encode(values))
        return None

    def _is_owner(self, key: str, place: int) -> bool:
        """Tell whether all URIs with a key belong to the template at a place.

        Otherwise, a spelling such as `files://secret%2Fplan` would read through `files://{+path}` what a rule about
        `files://secret/{name}` denies.
        """
        covers = [_template_of(binding).cover for binding in self._by_specificity]
        narrower, own, wider = covers[:place], covers[place], covers[place + 1 :]
        if any(cover.contains(key) for cover in narrower):
            return False
        if own.contains(key) or own.contains(f"{key}/"):
            return True
        return not any(cover.may_contain(key) for cover in narrower) and not any(cover.contains(key) for cover in wider)

    def find_template(self, text: str) -> Binding[FeatureSpec] | None:
        """Find a template by its text, or by a URI that it matches."""
        exact = next((one for one in self._by_specificity if one.spec.name == text), None)
        canonical = canonical_uri(text) if exact is None else None
        found = self.find(canonical, uri_key(canonical)) if canonical is not None else None
        return found[0] if found is not None else exact

    def served(self, registered: Iterable[AnyResource]) -> Iterable[IResourceTemplate[Any]]:
        return (one for one in registered if isinstance(one, IResourceTemplate))

    def compile(self, item: IResourceTemplate[Any]) -> Binding[FeatureSpec]:
        from axolotl_core.resources.uri_template import UriTemplate  # servers without templates start faster without it

        name = item.uri_template
        encode = _contents_encoder(item, self._settings.caching, self.authorization is not None)
        bound = self._binder.bind(item, item._kind, name, encode)
        completing = CompletionFeature(item, bound.spec)
        completion = self._binder.bind(completing, "completion", name, encode_completion)
        return msgspec.structs.replace(bound, completion=completion, template=UriTemplate(name))

    def describe(self, binding: Binding[FeatureSpec], revision: Revision) -> dict[str, Any]:
        return resource_definition(cast("AnyResource", binding.spec.feature), revision)

    def index(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        # The order is stable: of equally specific templates, the one that was registered first comes first.
        self._by_specificity = sorted(bindings, key=lambda binding: _template_of(binding).specificity)


def _template_of(binding: Binding[FeatureSpec]) -> "UriTemplate":
    assert binding.template is not None
    return binding.template


def cache_hints(own: CacheHint | None, caching: CachingSettings, guarded: bool) -> Callable[[Request], CacheHint]:
    """Compile the choice of the cache hint for what a principal reads."""
    if guarded:
        # Where access is restricted, a shared cache must not answer, because it does not check who reads.
        own = CacheHint(caching.resource_ttl_seconds if own is None else own.ttl_seconds, "private")
    shared = own or CacheHint(caching.resource_ttl_seconds, caching.scope)
    personal = own or CacheHint(caching.resource_ttl_seconds, "private")
    return lambda request: shared if request.exchange.principal == ANONYMOUS else personal


def _contents_encoder(resource: AnyResource, caching: CachingSettings, guarded: bool) -> EncodeOutput:
    hint_for = cache_hints(resource.cache, caching, guarded)
    depending = CacheHint(0, "private")  # the contents depend on the answers of one caller

    def encode_contents(output: ResourceContents, request: Request) -> bytes:
        era = request.era
        body = encode([contents_for(one, era.revision) for one in output])
        hint = hint_for(request) if request.rounds is None else depending
        return b'{"contents":%b%b' % (body, era.cacheable_tail(hint))

    return encode_contents


class ResourceMethods(ErrorFeatureMethod):
    """Reads resources, and subscribes to them."""

    def __init__(self, resources: ResourceCatalogue, templates: TemplateCatalogue, inflight: RunningCalls) -> None:
        super().__init__(inflight)
        self._resources = resources
        self._templates = templates

    def locate(self, request: Request) -> RequestTarget:
        return self.at_uri(uri_in(request))

    def at_uri(self, uri: str) -> RequestTarget:
        """Find the resource with a URI, or the template that matches it.

        A resource comes before a template, and a more specific template before another, whether the principal may read
        it or not: what is denied must not be readable through a template, in any spelling of its URI.
        """
        canonical = canonical_uri(uri)
        if canonical is None:
            return RequestTarget(None, uri=uri, needs_check=True)
        fixed = self._resources.find(canonical)
        if fixed is not None:
            return RequestTarget(fixed, uri=fixed.spec.name)
        key = uri_key(canonical)
        found = None if self._resources.contains(key) else self._templates.find(canonical, key)
        if found is not None and self._resources.claims(canonical, key, found[0].spec.name):
            found = None
        binding, variables = found or (None, b"{}")
        return RequestTarget(binding, variables, canonical, needs_check=binding is None)

    async def not_found(self, request: Request) -> ProtocolError:
        return ResourceNotFound(uri_in(request))

    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        # Variables that are not valid mean that there is no such resource.
        if isinstance(error, InvalidArguments):
            raise ResourceNotFound(uri_in(request)) from None
        return super().reply_to_failure(error, request)

    async def subscribe(self, request: Request) -> bytes:
        """Notify a client of changes of a resource from now on."""
        target = self.target_of(request)
        if target.binding is None:
            raise ResourceNotFound(uri_in(request))
        assert request.connection is not None
        uri = canonical_uri(target.uri) or target.uri
        subscribed = request.connection.subscriptions
        if uri not in subscribed and len(subscribed) >= MAX_RESOURCES:
            raise InvalidParams(f"Too many subscriptions: a client may subscribe to {MAX_RESOURCES} resources")
        subscribed.add(uri)
        return b"{}"

    async def unsubscribe(self, request: Request) -> bytes:
        """Stop notifying a client of changes of a resource."""
        uri = uri_in(request)
        assert request.connection is not None
        request.connection.subscriptions.discard(canonical_uri(uri) or uri)
        return b"{}"


def uri_in(request: Request) -> str:
    """Return the URI that a request names, or raise InvalidParams if there is none, or it is too long."""
    uri = read_params(request.data, ResourceParams).uri
    if len(uri) > MAX_URI_CHARACTERS:
        raise InvalidParams(
            f"Invalid params: the URI has {len(uri)} characters; at most {MAX_URI_CHARACTERS} are allowed"
        )
    return uri
