"""The tools of a server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from axolotl_core.errors import InvalidToolName, ToolNotFound
from axolotl_core.name_rule import INameRule, check_name
from axolotl_core.names import nearest
from axolotl_core.protocol.versions import Revision
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_server.binding import Binder, ToolBinding
from axolotl_server.catalogues.catalogue import Catalogue
from axolotl_server.eras.definitions import tool_definition
from axolotl_server.settings import ServerSettings

__all__ = ["ToolCatalogue"]


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


class ToolCatalogue(Catalogue[AnyTool, ToolBinding]):
    """Finds tools by name and lists them."""

    field = "tools"
    listed_by = "tools"

    by_name: Mapping[str, ToolBinding]
    """Finds a tool, the exact name first, then whatever its case; raises ToolNotFound with the nearest name."""

    def __init__(self, registry: ToolRegistry, binder: Binder, settings: ServerSettings, name_rule: INameRule) -> None:
        self._tools = registry
        self._binder = binder
        self._settings = settings.tools
        self._name_rule = name_rule
        super().__init__(registry, settings.protocol.page_size)

    def items(self) -> Iterable[AnyTool]:
        """Leave out the tools that the operator switched off."""
        return (tool for tool in self._tools.get_all() if self._settings.overrides_for(tool.name).enabled)

    def compile(self, item: AnyTool) -> ToolBinding:
        """Make a tool ready, if its name keeps the server's rule."""
        check_name(item, self._name_rule)
        return self._binder.bind_tool(item)

    def describe(self, binding: ToolBinding, revision: Revision) -> dict[str, Any]:
        """Describe a tool."""
        return tool_definition(binding.spec, revision)

    def index(self, bindings: Sequence[ToolBinding]) -> None:
        """Find tools by name."""
        self.by_name = _Names(bindings, self._name_rule, fold=self._settings.name_matching == "fold")
