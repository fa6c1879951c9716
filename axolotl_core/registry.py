"""Registries: every tool and prompt by its name, whatever the case, and every resource by its URI."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Any, Generic, TypeAlias, TypeVar

from axolotl_core.prompts import IPrompt, check_prompt
from axolotl_core.resources.resource import IResource, IResourceTemplate, check_resource
from axolotl_core.schema import JsonSchema
from axolotl_core.tools.schema_tool import SchemaHandler, SchemaTool
from axolotl_core.tools.tool import ITool, check_definition

ItemT = TypeVar("ItemT")

AnyTool: TypeAlias = ITool[Any, Any]
AnyPrompt: TypeAlias = IPrompt[Any]
AnyResource: TypeAlias = IResource | IResourceTemplate[Any]
ChangeListener: TypeAlias = Callable[[], object]
UpdateListener: TypeAlias = Callable[[str], object]


class Registry(ABC, Generic[ItemT]):
    """Features by name; listing keeps the declared spelling and the order of registration.

    Reads never wait; a read that runs while features are added sees them all or none of them.
    """

    def __init__(self, items: Iterable[ItemT] = ()) -> None:
        self._by_key: Mapping[str, ItemT] = {}
        """Never changed in place: readers hold it without a lock, writers replace it."""
        self._writing = RLock()
        self._listeners: list[ChangeListener] = []
        self.register_range(items)

    def register(self, item: ItemT) -> bool:
        """Add a feature; answers False and changes nothing if its name is taken.

        Raises:
            ConfigurationError: if it is not complete, or a running server cannot compile it.
        """
        return self.register_range((item,)) == 1

    def register_range(self, items: Iterable[ItemT]) -> int:
        """Add several features at once and answer how many of them were new.

        Raises:
            ConfigurationError: if one of them is not complete; then none is added.
        """
        candidates = tuple(items)
        for item in candidates:
            self.check(item)
        with self._writing:
            after = dict(self._by_key)
            for item in candidates:
                after.setdefault(self.key(self.name_of(item)), item)
            added = len(after) - len(self._by_key)
            if added:
                self._replace(after)
        return added

    def unregister(self, name: str) -> bool:
        """Remove a feature; answers False if there is none of that name."""
        return self.unregister_range((name,)) == 1

    def unregister_range(self, names: Iterable[str]) -> int:
        """Remove several features at once and answer how many of them were there."""
        with self._writing:
            gone = set(map(self.key, names))
            after = {key: item for key, item in self._by_key.items() if key not in gone}
            removed = len(self._by_key) - len(after)
            if removed:
                self._replace(after)
        return removed

    def try_get(self, name: str) -> ItemT | None:
        """Find a feature by its name."""
        return self._by_key.get(self.key(name))

    def get_all(self) -> tuple[ItemT, ...]:
        """List the features in the order of their registration."""
        return tuple(self._by_key.values())

    def on_change(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` after each change, in the thread that made it; the answer takes it off again."""
        with self._writing:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @abstractmethod
    def check(self, item: ItemT) -> None:
        """Look at a feature before it is added.

        Raises:
            ConfigurationError: if it is not complete; the text says what to write.
        """

    def name_of(self, item: Any) -> str:
        """Say under which name a feature is known."""
        return str(item.name)

    def key(self, name: str) -> str:
        """Fold a name: two names with the same key are one."""
        return name.casefold()

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.try_get(name) is not None

    def _replace(self, content: Mapping[str, ItemT]) -> None:
        """Swap the content; a listener that cannot live with it gets the old one back, and so do those told before."""
        before, self._by_key = self._by_key, content
        told: list[ChangeListener] = []
        try:
            for listener in tuple(self._listeners):
                listener()
                told.append(listener)
        except BaseException:
            self._by_key = before
            for listener in told:
                listener()
            raise


class ToolRegistry(Registry[AnyTool]):
    """Tools by name: lookup ignores case."""

    def check(self, item: AnyTool) -> None:
        """Look at a tool before it is added."""
        check_definition(item)

    def register_tool(self, name: str, schema: JsonSchema, handler: SchemaHandler, *, description: str = "") -> bool:
        """Add a tool made of a raw JSON Schema and a handler; answers False if the name is taken.

        Raises:
            ConfigurationError: if the schema is not valid.
        """
        return self.register(SchemaTool(name, schema, handler, description=description))


class PromptRegistry(Registry[AnyPrompt]):
    """Prompts by name: lookup ignores case."""

    def check(self, item: AnyPrompt) -> None:
        """Look at a prompt before it is added."""
        check_prompt(item)


class ResourceRegistry(Registry[AnyResource]):
    """Resources by URI and templates by the text of theirs; URIs are compared as they are."""

    def __init__(self, items: Iterable[AnyResource] = ()) -> None:
        self._update_listeners: list[UpdateListener] = []
        super().__init__(items)

    def check(self, item: AnyResource) -> None:
        """Look at a resource before it is added."""
        check_resource(item)

    def name_of(self, item: AnyResource) -> str:
        """Give the URI, or the template of URIs."""
        return item.uri if isinstance(item, IResource) else item.uri_template

    def key(self, name: str) -> str:
        """Leave a URI as it is."""
        return name

    def updated(self, uri: str) -> None:
        """Tell everyone who subscribed to a URI that what is behind it changed; any thread may call it."""
        for listener in tuple(self._update_listeners):
            listener(uri)

    def on_update(self, listener: UpdateListener) -> Callable[[], None]:
        """Call `listener` with each updated URI; the answer takes it off again."""
        self._update_listeners.append(listener)
        return lambda: self._update_listeners.remove(listener)
