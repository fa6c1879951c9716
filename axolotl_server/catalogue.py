"""The tools of a server as callers see them: found by name, listed in pages of ready bytes."""

import itertools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axolotl_core.errors import ConfigurationError, InvalidToolName, ToolNotFound
from axolotl_core.name_rule import INameRule, check_name
from axolotl_core.names import nearest
from axolotl_core.protocol.paging import decode_cursor, encode_cursor
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_server.binding import Binder, ToolBinding
from axolotl_server.eras.base import IEra
from axolotl_server.eras.downlevel import definition_for
from axolotl_server.settings import ServerSettings

__all__ = ["Catalogue"]


class _Names(dict[str, ToolBinding]):
    """Bindings by exact name; a name that is missing is tried in any case, so that the usual ones cost one lookup."""

    def __init__(self, bindings: Sequence[ToolBinding], rule: INameRule, *, fold: bool) -> None:
        super().__init__((binding.spec.name, binding) for binding in bindings)
        self._by_fold = {name.casefold(): binding for name, binding in self.items()} if fold else {}
        self._rule = rule

    def __missing__(self, name: str) -> ToolBinding:
        binding = self._by_fold.get(name.casefold())
        if binding is not None:
            return binding
        fault = self._rule.fault_of(name)
        if fault is not None:
            raise InvalidToolName(fault)
        raise ToolNotFound(name, nearest(name, self))


@dataclass(frozen=True, slots=True)
class _Listing:
    """The bindings at one moment in their order, with the pages made of them so far."""

    bindings: Sequence[ToolBinding]
    ordinals: Sequence[int]
    pages: dict[tuple[str, int], bytes] = field(default_factory=dict)


class Catalogue:
    """Follows a registry; a tool is compiled when it appears and keeps its counters until it goes."""

    by_name: Mapping[str, ToolBinding]
    """Finds a tool, the exact name first, then whatever its case; raises ToolNotFound with the nearest name."""

    def __init__(self, registry: ToolRegistry, binder: Binder, settings: ServerSettings, name_rule: INameRule) -> None:
        self._registry = registry
        self._binder = binder
        self._page_size = settings.protocol.page_size
        self._settings = settings.tools
        self._name_rule = name_rule
        self._next_ordinal = itertools.count(1)
        self._known: dict[int, tuple[int, ToolBinding]] = {}
        self._listing: _Listing
        self.refresh()
        self.close = registry.on_change(self.refresh)
        """Stop following the registry."""

    def bindings(self) -> tuple[ToolBinding, ...]:
        """List everything that can be called."""
        return tuple(self._listing.bindings)

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
        self._known = known
        bindings = [binding for _, binding in known.values()]
        self.by_name = _Names(bindings, self._name_rule, fold=self._settings.name_matching == "fold")
        self._listing = _Listing(bindings, [ordinal for ordinal, _ in known.values()])

    def _compiled(self, tool: AnyTool) -> tuple[int, ToolBinding]:
        check_name(tool, self._name_rule)
        return next(self._next_ordinal), self._binder.bind(tool)

    def _make_page(self, listing: _Listing, era: IEra, start: int) -> bytes:
        end = start + self._page_size
        chosen = listing.bindings[start:end]
        tools = b",".join(encode(definition_for(binding.spec, era.revision)) for binding in chosen)
        more = end < len(listing.ordinals)
        cursor = b',"nextCursor":%b' % encode(encode_cursor("tools", listing.ordinals[end - 1])) if more else b""
        return b'{"tools":[%b]%b%b' % (tools, cursor, era.list_tail)
