"""What all catalogues do: follow a registry, compile what appears in it, and list it."""

import itertools
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.paging import decode_cursor, encode_cursor
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import Registry
from axolotl_server.binding import Binding
from axolotl_server.eras.base import IEra

__all__ = ["Catalogue"]

ItemT = TypeVar("ItemT")
BindingT = TypeVar("BindingT", bound=Binding[Any])


@dataclass(frozen=True, slots=True)
class _Listing(Generic[BindingT]):
    """The bindings at one moment in their order, with the pages made of them so far."""

    bindings: Sequence[BindingT]
    ordinals: Sequence[int]
    pages: dict[tuple[str, int], bytes] = field(default_factory=dict)


class Catalogue(ABC, Generic[ItemT, BindingT]):
    """Follows a registry; a feature is compiled when it appears and keeps its counters until it goes."""

    field: ClassVar[str]
    """What the list is called in a result."""
    listed_by: ClassVar[str]
    """What its method is called, without `/list`."""

    def __init__(self, registry: Registry[Any], page_size: int) -> None:
        self._registry = registry
        self._page_size = page_size
        self._next_ordinal = itertools.count(1)
        self._known: dict[int, tuple[int, BindingT]] = {}
        self._listing: _Listing[BindingT]
        self.refresh()
        self.close: Callable[[], None] = registry.on_change(self.refresh)
        """Stop following the registry."""

    @abstractmethod
    def items(self) -> Iterable[ItemT]:
        """Choose from the registry what is served."""

    @abstractmethod
    def compile(self, item: ItemT) -> BindingT:
        """Make a feature ready to be called.

        Raises:
            ConfigurationError: if it cannot be used.
        """

    @abstractmethod
    def describe(self, binding: BindingT, revision: Revision) -> dict[str, Any]:
        """Describe a feature as the list shows it to a peer of this revision."""

    @abstractmethod
    def index(self, bindings: Sequence[BindingT]) -> None:
        """Prepare to find these bindings, and no others."""

    def bindings(self) -> tuple[BindingT, ...]:
        """List everything that is served."""
        return tuple(self._listing.bindings)

    def page(self, era: IEra, cursor: str | None) -> bytes:
        """Give a page of the list in the form of a revision; those that follow each other are made once.

        Raises:
            InvalidParams: if the cursor is none of ours.
        """
        listing = self._listing
        after = 0 if cursor is None else decode_cursor(self.listed_by, cursor)
        start = bisect_right(listing.ordinals, after)
        if start % self._page_size:
            return self._make_page(listing, era, start)  # kept, made-up cursors could fill the memory
        key = (era.revision.name, start)
        if key not in listing.pages:
            listing.pages[key] = self._make_page(listing, era, start)
        return listing.pages[key]

    def refresh(self) -> None:
        """Compile what is new in the registry and forget what is gone.

        Raises:
            ConfigurationError: with all features that cannot be compiled; then nothing changes.
        """
        known: dict[int, tuple[int, BindingT]] = {}
        findings: list[str] = []
        for item in self.items():
            try:
                known[id(item)] = self._known.get(id(item)) or (next(self._next_ordinal), self.compile(item))
            except ConfigurationError as error:
                findings.extend(error.findings)
        if findings:
            raise ConfigurationError(*findings)
        bindings = [binding for _, binding in known.values()]
        self.index(bindings)
        self._known = known
        self._listing = _Listing(bindings, [ordinal for ordinal, _ in known.values()])

    def _make_page(self, listing: _Listing[BindingT], era: IEra, start: int) -> bytes:
        end = start + self._page_size
        entries = b",".join(encode(self.describe(one, era.revision)) for one in listing.bindings[start:end])
        more = end < len(listing.ordinals)
        cursor = encode(encode_cursor(self.listed_by, listing.ordinals[end - 1])) if more else b""
        next_cursor = b',"nextCursor":' + cursor if more else b""
        return b'{"%b":[%b]%b%b' % (self.field.encode(), entries, next_cursor, era.list_tail)
