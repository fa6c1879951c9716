"""The registry: every tool by its name, whatever the case."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeAlias

from axolotl_core.schema import JsonSchema
from axolotl_core.schema_tool import SchemaHandler, SchemaTool
from axolotl_core.tool import ITool, check_definition

__all__ = ["AnyTool", "ChangeListener", "ToolRegistry"]

AnyTool: TypeAlias = ITool[Any, Any]
ChangeListener: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The registry's content at one moment; readers hold it without a lock, writers replace it."""

    by_fold: Mapping[str, AnyTool] = field(default_factory=dict)

    def with_tools(self, tools: Iterable[AnyTool]) -> "_Snapshot":
        by_fold = dict(self.by_fold)
        for tool in tools:
            by_fold.setdefault(tool.name.casefold(), tool)
        return _Snapshot(by_fold)

    def without(self, names: Iterable[str]) -> "_Snapshot":
        gone = {name.casefold() for name in names}
        return _Snapshot({fold: tool for fold, tool in self.by_fold.items() if fold not in gone})


class ToolRegistry:
    """Tools by name: lookup ignores case, listing keeps the declared spelling and the order of registration.

    Reads never wait; a read that runs while tools are added sees them all or none of them.
    """

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._snapshot = _Snapshot()
        self._writing = RLock()
        self._listeners: list[ChangeListener] = []
        self.register_range(tools)

    def register(self, tool: AnyTool) -> bool:
        """Add a tool; answers False and changes nothing if its name is taken, in any case.

        Raises:
            ConfigurationError: if it is no complete tool, or a running server cannot compile it.
        """
        return self.register_range((tool,)) == 1

    def register_range(self, tools: Iterable[AnyTool]) -> int:
        """Add several tools at once and answer how many of them were new.

        Raises:
            ConfigurationError: if one of them is no complete tool; then none is added.
        """
        candidates = tuple(tools)
        for tool in candidates:
            check_definition(tool)
        with self._writing:
            before = self._snapshot
            after = before.with_tools(candidates)
            added = len(after.by_fold) - len(before.by_fold)
            if added:
                self._replace(after)
        return added

    def register_tool(self, name: str, schema: JsonSchema, handler: SchemaHandler, *, description: str = "") -> bool:
        """Add a tool made of a raw JSON Schema and a handler; answers False if the name is taken.

        Raises:
            ConfigurationError: if the schema is not valid.
        """
        return self.register(SchemaTool(name, schema, handler, description=description))

    def unregister(self, name: str) -> bool:
        """Remove a tool; answers False if there is none of that name."""
        return self.unregister_range((name,)) == 1

    def unregister_range(self, names: Iterable[str]) -> int:
        """Remove several tools at once and answer how many of them were there."""
        with self._writing:
            before = self._snapshot
            after = before.without(names)
            removed = len(before.by_fold) - len(after.by_fold)
            if removed:
                self._replace(after)
        return removed

    def try_get(self, name: str) -> AnyTool | None:
        """Find a tool by its name in any case."""
        return self._snapshot.by_fold.get(name.casefold())

    def get_all(self) -> tuple[AnyTool, ...]:
        """List the tools in the order of their registration."""
        return tuple(self._snapshot.by_fold.values())

    def on_change(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` after each change, in the thread that made it; the answer takes it off again."""
        with self._writing:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def __len__(self) -> int:
        return len(self._snapshot.by_fold)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.try_get(name) is not None

    def _replace(self, snapshot: _Snapshot) -> None:
        """Swap the content; a listener that cannot live with it gets the old one back, and so do those told before."""
        before, self._snapshot = self._snapshot, snapshot
        told: list[ChangeListener] = []
        try:
            for listener in tuple(self._listeners):
                listener()
                told.append(listener)
        except BaseException:
            self._snapshot = before
            for listener in told:
                listener()
            raise
