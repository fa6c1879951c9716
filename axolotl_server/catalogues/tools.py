"""The tools of a server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from axolotl_core.errors import InvalidToolName, ToolNotFound
from axolotl_core.name_rule import INameRule, check_name
from axolotl_core.names import nearest
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import Revision
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_server.binding import Binder, ToolBinding
from axolotl_server.catalogues.catalogue import Catalogue
from axolotl_server.eras.definitions import tool_definition
from axolotl_server.settings import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.authorization.authorization import Authorization

__all__ = ["ToolCatalogue"]


class _Names(dict[str, ToolBinding]):
    """Bindings by exact name; a name that is missing is tried in any case, so that the usual ones cost one lookup."""

    def __init__(self, bindings: Sequence[ToolBinding], rule: INameRule, *, fold: bool, suggests: bool) -> None:
        super().__init__((binding.spec.name, binding) for binding in bindings)
        self._by_fold = {name.casefold(): binding for name, binding in self.items()} if fold else {}
        self._rule = rule
        self._suggests = suggests

    def __missing__(self, name: str) -> ToolBinding:
        binding = self._by_fold.get(name.casefold())
        if binding is None:
            raise self.unknown(name, nearest(name, self) if self._suggests else None)
        return binding

    def unknown(self, name: str, suggestion: str | None) -> ToolNotFound:
        fault = self._rule.fault_of(name)
        return ToolNotFound(name, suggestion) if fault is None else InvalidToolName(fault)


class ToolCatalogue(Catalogue[AnyTool, ToolBinding]):
    """Finds tools by name and lists them."""

    field = "tools"
    listed_by = "tools"

    by_name: Mapping[str, ToolBinding]
    """Finds a tool, the exact name first, then whatever its case; raises ToolNotFound with the nearest name, where all
    names may be known to all."""

    def __init__(
        self,
        registry: ToolRegistry,
        binder: Binder,
        settings: ServerSettings,
        name_rule: INameRule,
        authorization: "Authorization | None" = None,
    ) -> None:
        self._tools = registry
        self._binder = binder
        self._settings = settings.tools
        self._name_rule = name_rule
        self._names: _Names
        super().__init__(registry, settings, authorization)

    def try_find(self, name: str) -> ToolBinding | None:
        """Find a tool as `by_name` does."""
        try:
            return self._names[name]
        except ToolNotFound:
            return None

    async def unknown(self, name: str, principal: Principal) -> ToolNotFound:
        """Say that there is no tool of a name, with the nearest name that the principal may know."""
        return self._names.unknown(name, await self.suggestion(name, principal))

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
        fold = self._settings.name_matching == "fold"
        names = _Names(bindings, self._name_rule, fold=fold, suggests=self.authorization is None)
        self.by_name = self._names = names
