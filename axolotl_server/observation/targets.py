"""What an operation is about, by the names that were registered, whatever came over the wire."""

from typing import Protocol, TypeAlias

from msgspec import UNSET

from axolotl_core.errors import ProtocolError
from axolotl_core.spec import FeatureSpec
from axolotl_server.authorization.doors import Doors
from axolotl_server.binding import Binding
from axolotl_server.catalogues.prompts import PromptCatalogue
from axolotl_server.catalogues.tools import ToolCatalogue
from axolotl_server.observation.metrics import UNKNOWN
from axolotl_server.observation.operations import Operation
from axolotl_server.request import Request

__all__ = ["NO_TARGET", "IFeatures", "Target", "Targets"]

Target: TypeAlias = tuple[str, str, str, str]
"""The GenAI operation, the tool, the prompt, and the resource or its template; empty where there is none."""

NO_TARGET: Target = ("", "", "", "")


def _tool(name: str) -> Target:
    return "execute_tool", name, "", ""


def _prompt(name: str) -> Target:
    return "", "", name, ""


def _resource(name: str) -> Target:
    return "", "", "", name


_MAKERS = {
    "tools/call": _tool,
    "prompts/get": _prompt,
    "resources/read": _resource,
    "resources/subscribe": _resource,
    "resources/unsubscribe": _resource,
}


class IFeatures(Protocol):
    """What a server offers."""

    @property
    def tools(self) -> ToolCatalogue: ...

    @property
    def prompts(self) -> PromptCatalogue: ...

    @property
    def doors(self) -> Doors: ...


class Targets:
    """Finds the registered name behind a request."""

    def __init__(self, features: IFeatures) -> None:
        self._tools, self._prompts, self._doors = features.tools, features.prompts, features.doors

    def expected(self, method: str, request: Request) -> Target:
        """Guess the target before anything has run, where one lookup is enough for that."""
        name = request.head.params.name
        if name is UNSET:
            return NO_TARGET
        found: Binding[FeatureSpec] | None = None
        if method == "tools/call":
            found = self._tools.by_name.get(name)
        elif method == "prompts/get":
            found = self._prompts.try_find(name)
        return NO_TARGET if found is None else _MAKERS[method](found.spec.name)

    def of(self, operation: Operation) -> Target:
        """Give the target of an operation that is over."""
        make = _MAKERS.get(operation.method)
        if make is None:
            return NO_TARGET
        return make(self._found(operation) if operation.call is None else operation.call.spec.name)

    def _found(self, operation: Operation) -> str:
        """Look for what a request names of which nothing was run."""
        request, method = operation.request, operation.method
        if method in ("tools/call", "prompts/get"):
            return "".join(self.expected(method, request)[1:]) or UNKNOWN
        find = self._doors.by_method.get("resources/subscribe")
        try:
            sought = None if find is None else find(request)
        except ProtocolError:
            return UNKNOWN
        return UNKNOWN if sought is None or sought.binding is None else sought.binding.spec.name
