"""The tools of a server as callers see them: found by name, listed in pages of ready bytes."""

import itertools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axolotl_core.errors import ConfigurationError, ToolNotFound
from axolotl_core.names import nearest
from axolotl_core.protocol.paging import decode_cursor, encode_cursor
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_server.binding import Binder, ToolBinding
from axolotl_server.eras.base import IEra
from axolotl_server.eras.downlevel import definition_for
from axolotl_server.settings import ServerSettings

__all__ = ["Catalogue"]


@dataclass(frozen=True, slots=True)
class _Listing:
    """The bindings at one moment, with the pages made of them so far."""

    by_name: Mapping[str, ToolBinding]
    by_fold: Mapping[str, ToolBinding]
    ordinals: Sequence[int]
    pages: dict[tuple[str, int], bytes] = field(default_factory=dict)


class Catalogue:
    """Follows a registry; a tool is compiled when it appears and keeps its counters until it goes."""

    def __init__(self, registry: ToolRegistry, binder: Binder, settings: ServerSettings) -> None:
        self._registry = registry
        self._binder = binder
        self._page_size = settings.protocol.page_size
        self._fold = settings.tools.name_matching == "fold"
        self._settings = settings.tools
        self._next_ordinal = itertools.count(1)
        self._known: dict[int, tuple[int, ToolBinding]] = {}
        self._listing = _Listing({}, {}, ())
        self.refresh()
        registry.on_change(self.refresh)

    def find(self, name: str) -> ToolBinding:
        """Find a tool: the exact name first, then whatever its case.

        Raises:
            ToolNotFound: if there is none; it suggests the nearest name.
        """
        listing = self._listing
        binding = listing.by_name.get(name)
        if binding is None and self._fold:
            binding = listing.by_fold.get(name.casefold())
        if binding is None:
            raise ToolNotFound(name, nearest(name, listing.by_name))
        return binding

    def bindings(self) -> tuple[ToolBinding, ...]:
        """List everything that can be called."""
        return tuple(self._listing.by_name.values())

    def page(self, era: IEra, cursor: str | None) -> bytes:
        """Give a page of the list in the form of a revision, made once.

        Raises:
            InvalidParams: if the cursor is none of ours.
        """
        listing = self._listing
        after = 0 if cursor is None else decode_cursor("tools", cursor)
        key = (era.revision.name, bisect_right(listing.ordinals, after))
        if key not in listing.pages:
            listing.pages[key] = self._make_page(listing, era, key[1])
        return listing.pages[key]

    def refresh(self) -> None:
        """Compile what is new in the registry and forget what is gone.

        Raises:
            ConfigurationError: with all tools that cannot be compiled; then nothing changes.
        """
        known: dict[int, tuple[int, ToolBinding]] = {}
        findings: list[str] = []
        for tool in self._registry.get_all():
            if self._settings.overrides_for(tool.name).enabled:
                try:
                    known[id(tool)] = self._known.get(id(tool)) or self._compiled(tool)
                except ConfigurationError as error:
                    findings.extend(error.findings)
        if findings:
            raise ConfigurationError(*findings)
        bindings = [binding for _, binding in known.values()]
        self._known = known
        self._listing = _Listing(
            {binding.spec.name: binding for binding in bindings},
            {binding.spec.name.casefold(): binding for binding in bindings},
            [ordinal for ordinal, _ in known.values()],
        )

    def _compiled(self, tool: AnyTool) -> tuple[int, ToolBinding]:
        return next(self._next_ordinal), self._binder.bind(tool)

    def _make_page(self, listing: _Listing, era: IEra, start: int) -> bytes:
        end = start + self._page_size
        chosen = tuple(listing.by_name.values())[start:end]
        tools = b",".join(encode(definition_for(binding.spec, era.revision)) for binding in chosen)
        more = end < len(listing.ordinals)
        cursor = b',"nextCursor":%b' % encode(encode_cursor("tools", listing.ordinals[end - 1])) if more else b""
        return b'{"tools":[%b]%b%b' % (tools, cursor, era.list_tail)
