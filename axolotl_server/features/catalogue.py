"""The catalogue of one kind of feature: compiles the features of a registry and lists them."""

import itertools
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.feature import NAMED_KINDS
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import fault_of_text, fault_of_unicode_name, nearest
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION, LATEST_STATELESS_REVISION, Revision
from axolotl_core.protocol.wire import decode_cursor, encode, encode_cursor
from axolotl_core.registry import Registry
from axolotl_core.resources.resource import CacheHint
from axolotl_server.calls.binding import Binder, Binding
from axolotl_server.protocol.eras.era import IEra
from axolotl_server.protocol.params import ListParams, read_params
from axolotl_server.protocol.request import Request
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.access.authorization import Authorization

ViewT = TypeVar("ViewT")

PAGE_SIZE: Final = 1000
"""The maximum number of entries in a page of a list."""
_MAX_PROFILES: Final = 1000
_MAX_VIEWS: Final = 32


class Views(Generic[ViewT]):
    """The parts of a list that principals see; principals that see the same part share it.

    With the rules of the settings, principals that the rules treat alike are decided on once. An authorizer of the user
    is asked each time.
    """

    def __init__(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        self._bindings = bindings
        self._by_profile: dict[Hashable, bytes] = {}
        self._views: dict[bytes, ViewT] = {}

    async def mask(self, principal: Principal, authorization: "Authorization") -> bytes:
        """Return a byte per feature, 1 if the principal may use it, or raise InternalError if the authorizer failed."""
        if authorization.policy is None:
            return await self._decide(principal, authorization)
        profile = authorization.policy.profile(principal), principal.scopes & self._used_scopes
        mask = self._by_profile.get(profile)
        if mask is None:
            mask = await self._decide(principal, authorization)
            if len(self._by_profile) >= _MAX_PROFILES:
                self._by_profile.clear()
            self._by_profile[profile] = mask
        return mask

    async def _decide(self, principal: Principal, authorization: "Authorization") -> bytes:
        return bytes(await authorization.allowed(principal, self._specs))

    @cached_property
    def _specs(self) -> Sequence[FeatureSpec]:
        return [binding.spec for binding in self._bindings]

    @cached_property
    def _used_scopes(self) -> frozenset[str]:
        return frozenset().union(*(spec.feature.scopes for spec in self._specs))

    def view(self, mask: bytes, make: Callable[[], ViewT]) -> ViewT:
        """Return the view for a mask, which is made once and kept."""
        view = self._views.get(mask)
        if view is None:
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()
            view = self._views[mask] = make()
        return view


ItemT = TypeVar("ItemT")
SpecT = TypeVar("SpecT", bound=FeatureSpec)


class _Listing(msgspec.Struct, Generic[SpecT], frozen=True):
    """Bindings at one moment, in their order."""

    bindings: Sequence[Binding[SpecT]]
    ordinals: Sequence[int]

    def extended(self, entries: Iterable[tuple[int, Binding[SpecT]]]) -> "_Listing[SpecT]":
        """Add bindings at the end."""
        ordinals, bindings = zip(*entries, strict=True) if (entries := tuple(entries)) else ((), ())
        return _Listing([*self.bindings, *bindings], [*self.ordinals, *ordinals])

    def select(self, mask: bytes) -> "_Listing[SpecT]":
        """Leave out the bindings that are not marked; the ordinals of the others stay, so that cursors remain valid."""
        compress = itertools.compress
        return _Listing([*compress(self.bindings, mask)], [*compress(self.ordinals, mask)])


def _texts_in(described: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Find all titles and descriptions in the description of a feature, with their places."""
    if isinstance(described, Mapping):
        for key, value in described.items():
            inner = f"{place}.{key}" if place else str(key)
            if isinstance(value, str):
                if key in ("description", "title"):
                    yield inner, value
            else:
                yield from _texts_in(value, inner)
    elif isinstance(described, (list, tuple)):
        for index, value in enumerate(described):
            yield from _texts_in(value, f"{place}[{index}]")


class Catalogue(ABC, Generic[ItemT, SpecT]):
    """The features that a server offers from one registry; each is compiled when it is registered."""

    field: ClassVar[str]
    """The member of a result that holds the list."""
    method_prefix: ClassVar[str]
    """The name of the method without `/list`."""

    def __init__(
        self,
        registry: Registry[Any],
        binder: Binder,
        settings: ServerSettings,
        authorization: "Authorization | None" = None,
    ) -> None:
        self.authorization = authorization
        """Decides who sees what; None if everyone sees everything."""
        self._registry = registry
        self._binder = binder
        self._settings = settings
        self._page_size = PAGE_SIZE
        self._private_hint = CacheHint(settings.caching.list_ttl_seconds, "private")
        self._next_ordinal = itertools.count(1)
        self._registered: tuple[Any, ...] = ()
        """The content of the registry that the catalogue shows."""
        self._known: dict[int, tuple[int, Binding[SpecT]]] = {}
        self._entries: dict[tuple[str, int], bytes] = {}
        """Encoded features, by revision and ordinal, so that a page that starts anywhere takes little work."""
        self._shown: tuple[_Listing[SpecT], Views[_Listing[SpecT]]]
        """All bindings, and the views of them; both are replaced together."""
        self.refresh()
        self.close: Callable[[], None] = registry.on_change(self.refresh)
        """Stop following the registry."""

    @abstractmethod
    def served(self, registered: Iterable[Any]) -> Iterable[ItemT]:
        """Select the features that are served from those in the registry."""

    @abstractmethod
    def compile(self, item: ItemT) -> Binding[SpecT]:
        """Compile a feature, or raise ConfigurationError if it cannot be used."""

    @abstractmethod
    def describe(self, binding: Binding[SpecT], revision: Revision) -> dict[str, Any]:
        """Describe a feature as the list shows it in a revision."""

    @abstractmethod
    def index(self, bindings: Sequence[Binding[SpecT]]) -> None:
        """Replace the bindings that can be found."""

    def index_more(self, bindings: Sequence[Binding[SpecT]], added: Sequence[Binding[SpecT]]) -> None:
        """Add bindings to those that can be found; `bindings` are all of them."""
        self.index(bindings)

    def make_views(self, bindings: Sequence[Binding[SpecT]]) -> Views[_Listing[SpecT]]:
        """Make the views of a list."""
        return Views(bindings)

    def bindings(self) -> tuple[Binding[SpecT], ...]:
        """Return the bindings of everything that is served."""
        return tuple(self._shown[0].bindings)

    def check_listing(self, binding: Binding[SpecT]) -> None:
        """Make the description of a feature, or raise ConfigurationError, because otherwise the whole list would fail.

        The newest revisions of both eras have every member that a description can have.
        """
        what = f"{binding.spec.kind.title()} {binding.spec.name!r}"
        try:
            for revision in (LATEST_HANDSHAKE_REVISION, LATEST_STATELESS_REVISION):
                described = self.describe(binding, revision)
                encode(described)
        except Exception as error:
            raise ConfigurationError(f"{what} cannot be listed: {type(error).__name__}: {error}") from error
        self._check_name(what, binding.spec)
        for place, text in _texts_in(described):
            fault = fault_of_text(text)
            if fault is not None:
                raise ConfigurationError(f"{what}: {place}: {fault}")

    def _check_name(self, what: str, spec: FeatureSpec) -> None:
        """Check that a name cannot be taken for another one; a resource is found by its URI."""
        if spec.name.isascii() or spec.kind not in NAMED_KINDS:
            return
        if self._settings.protocol.ascii_names:
            raise ConfigurationError(
                f"{what} has a name that is not ASCII: rename it, or set protocol.ascii_names to false"
            )
        fault = fault_of_unicode_name(spec.name)
        if fault is not None:
            raise ConfigurationError(f"{what} has a name that could be taken for another one: {fault}")

    async def list(self, request: Request) -> bytes:
        """Answer a request for a page of the list."""
        cursor = read_params(request.data, ListParams).cursor
        return await self.page(request.era, cursor, request.exchange.principal)

    async def page(self, era: IEra, cursor: str | None, principal: Principal) -> bytes:
        """Return a page of the list in the form of a revision, with the features that the principal may use.

        It raises InvalidParams for an invalid cursor, and InternalError if the authorizer failed.
        """
        listing, views = self._shown
        after = 0 if cursor is None else decode_cursor(self.method_prefix, cursor)
        if self.authorization is None:
            return self._page(listing, era, after, era.list_tail)
        mask = await views.mask(principal, self.authorization)
        part = views.view(mask, lambda: listing.select(mask))
        return self._page(part, era, after, era.cacheable_tail(self._private_hint))

    async def suggestion(self, name: str, principal: Principal) -> str | None:
        """Find the most similar name that the principal may know; None if that would need an authorizer of the user."""
        if self.authorization is not None and self.authorization.is_async:
            return None
        return nearest(name, (binding.spec.name for binding in await self.visible_bindings(principal)))

    async def visible_bindings(self, principal: Principal) -> Iterable[Binding[SpecT]]:
        """Return the bindings that a principal may use, or raise InternalError if the authorizer failed."""
        listing, views = self._shown
        if self.authorization is None:
            return listing.bindings
        return itertools.compress(listing.bindings, await views.mask(principal, self.authorization))

    def refresh(self) -> None:
        """Compile new features and forget removed ones.

        If some cannot be compiled, nothing changes and a ConfigurationError names all of them. New features at the end
        are added to the others in little time, because programs may register thousands one by one.
        """
        registered, before = self._registry.get_all(), len(self._registered)
        if before and registered[:before] == self._registered:
            added = self._compile_all(registered[before:])
            listing = self._shown[0].extended(added.values())
            self.index_more(listing.bindings, [binding for _, binding in added.values()])
            self._known.update(added)
        else:
            known = self._compile_all(registered)
            nothing: _Listing[SpecT] = _Listing((), ())
            listing = nothing.extended(known.values())
            self.index(listing.bindings)
            self._known = known
            ordinals = {ordinal for ordinal, _ in known.values()}
            self._entries = {key: entry for key, entry in tuple(self._entries.items()) if key[1] in ordinals}
        self._registered = registered
        self._shown = listing, self.make_views(listing.bindings)

    def _compile_all(self, registered: Iterable[Any]) -> dict[int, tuple[int, Binding[SpecT]]]:
        """Return the ordinals and bindings of features, by their identity; only new ones are compiled."""
        entries: dict[int, tuple[int, Binding[SpecT]]] = {}
        findings: list[str] = []
        for item in self.served(registered):
            try:
                entries[id(item)] = self._known.get(id(item)) or self._compiled(item)
            except ConfigurationError as error:
                findings.extend(error.findings)
        if findings:
            raise ConfigurationError(*findings)
        return entries

    def _compiled(self, item: ItemT) -> tuple[int, Binding[SpecT]]:
        binding = self.compile(item)
        self.check_listing(binding)
        return next(self._next_ordinal), binding

    def _page(self, listing: _Listing[SpecT], era: IEra, after: int, tail: bytes) -> bytes:
        start = bisect_right(listing.ordinals, after)
        end = start + self._page_size
        shown = zip(listing.ordinals[start:end], listing.bindings[start:end], strict=True)
        entries = b",".join(self._entry(ordinal, binding, era.revision) for ordinal, binding in shown)
        more = end < len(listing.ordinals)
        cursor = encode(encode_cursor(self.method_prefix, listing.ordinals[end - 1])) if more else b""
        next_cursor = b',"nextCursor":' + cursor if more else b""
        return b'{"%b":[%b]%b%b' % (self.field.encode(), entries, next_cursor, tail)

    def _entry(self, ordinal: int, binding: Binding[SpecT], revision: Revision) -> bytes:
        entry = self._entries.get((revision.name, ordinal))
        if entry is None:
            entry = self._entries[revision.name, ordinal] = encode(self.describe(binding, revision))
        return entry
