"""Registries of tools and prompts by name, and of resources by URI."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, Generic, TypeAlias, TypeVar

from axolotl_core.prompts import IPrompt, check_prompt
from axolotl_core.resources.resource import IResource, IResourceTemplate, check_resource
from axolotl_core.resources.uri_form import canonical_uri
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
    """Features by name. Lists keep the declared spelling and the order of registration.

    Reads never wait. A read during a change sees either all of the change or nothing of it.
    """

    def __init__(self, items: Iterable[ItemT] = ()) -> None:
        self._by_key: dict[str, ItemT] = {}
        """Readers use it without a lock. Writers add a single feature in place, which is atomic and as fast in a large
        registry as in a small one, and replace it for all other changes."""
        self._writing = RLock()
        self._listeners: list[ChangeListener] = []
        self.register_range(items)

    def register(self, item: ItemT) -> bool:
        """Add a feature. Return False and change nothing if its name is taken.

        Raises:
            ConfigurationError: if it is incomplete, or a running server cannot compile it.
        """
        self.check(item)
        with self._writing:
            key = self.key(self.name_of(item))
            if key in self._by_key:
                return False
            self._by_key[key] = item
            self._notify(lambda: self._by_key.pop(key))
        return True

    def register_range(self, items: Iterable[ItemT]) -> int:
        """Add several features at once and return how many of them were new.

        Raises:
            ConfigurationError: if one of them is incomplete; then none is added.
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
        """Remove a feature. Return False if no feature has this name."""
        return self.unregister_range((name,)) == 1

    def unregister_range(self, names: Iterable[str]) -> int:
        """Remove several features at once and return how many of them existed."""
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
        """Return all features in the order of their registration."""
        while True:
            try:
                return tuple(self._by_key.values())
            except RuntimeError:  # another thread has added a feature in the meantime
                continue

    def on_change(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` after each change, in the thread that made it. Return a function that removes it."""
        with self._writing:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @abstractmethod
    def check(self, item: ItemT) -> None:
        """Check a feature before it is added.

        Raises:
            ConfigurationError: if it is incomplete.
        """

    def name_of(self, item: Any) -> str:
        """Return the name of a feature."""
        return str(item.name)

    def key(self, name: str) -> str:
        """Return the key of a name. Names with equal keys are the same name."""
        return name.casefold()

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.try_get(name) is not None

    def _replace(self, content: dict[str, ItemT]) -> None:
        before, self._by_key = self._by_key, content
        self._notify(lambda: setattr(self, "_by_key", before))

    def _notify(self, undo: Callable[[], object]) -> None:
        """Notify the listeners. If one rejects the change, undo it and notify the others again."""
        notified: list[ChangeListener] = []
        try:
            for listener in tuple(self._listeners):
                listener()
                notified.append(listener)
        except BaseException:
            undo()
            for listener in notified:
                listener()
            raise


class ToolRegistry(Registry[AnyTool]):
    """Tools by name, ignoring case."""

    def check(self, item: AnyTool) -> None:
        check_definition(item)

    def register_tool(self, name: str, schema: JsonSchema, handler: SchemaHandler, *, description: str = "") -> bool:
        """Add a tool with a raw JSON Schema and a handler. Return False if the name is taken.

        Without a `description`, the tool has the description of its schema.

        Raises:
            ConfigurationError: if the schema is invalid.
        """
        return self.register(SchemaTool(name, schema, handler, description=description))


class PromptRegistry(Registry[AnyPrompt]):
    """Prompts by name, ignoring case."""

    def check(self, item: AnyPrompt) -> None:
        check_prompt(item)


class ResourceRegistry(Registry[AnyResource]):
    """Resources by URI in any equivalent spelling, and resource templates by URI template."""

    def __init__(self, items: Iterable[AnyResource] = ()) -> None:
        self._update_listeners: list[UpdateListener] = []
        super().__init__(items)

    def check(self, item: AnyResource) -> None:
        check_resource(item)

    def name_of(self, item: AnyResource) -> str:
        return item.uri if isinstance(item, IResource) else item.uri_template

    def key(self, name: str) -> str:
        return canonical_uri(name) or name

    def updated(self, uri: str) -> None:
        """Notify the subscribers of a URI that the resource has changed. Can be called from any thread."""
        for listener in tuple(self._update_listeners):
            listener(uri)

    def on_update(self, listener: UpdateListener) -> Callable[[], None]:
        """Call `listener` with each updated URI. Return a function that removes it."""
        self._update_listeners.append(listener)
        return lambda: self._update_listeners.remove(listener)
