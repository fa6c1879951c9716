"""`tools/list` and `tools/call`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from axolotl_core.errors import (
    InvalidArguments,
    InvalidParams,
    InvalidToolName,
    MissingCapability,
    ProtocolError,
    ToolError,
    ToolNotFound,
)
from axolotl_core.features.spec import ToolSpec
from axolotl_core.names import INameRule, check_name
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import Revision
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_server.calls.binding import Binder, ToolBinding, encode_error
from axolotl_server.calls.feature_method import FeatureMethod, RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.protocol.eras.presentation import tool_definition
from axolotl_server.protocol.eras.stateless import check_parameters
from axolotl_server.protocol.request import Request
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.access.authorization import Authorization


class ToolCatalogue(Catalogue[AnyTool, ToolSpec]):
    """Finds tools by name and lists them."""

    field = "tools"
    method_prefix = "tools"

    exact: dict[str, ToolBinding]
    """The tools by exact name, so that calling one costs a single lookup."""
    _by_fold: dict[str, ToolBinding]

    def __init__(
        self,
        registry: ToolRegistry,
        binder: Binder,
        settings: ServerSettings,
        name_rule: INameRule,
        authorization: "Authorization | None" = None,
    ) -> None:
        self._name_rule = name_rule
        super().__init__(registry, binder, settings, authorization)

    def find(self, name: str) -> ToolBinding | None:
        """Find a tool by its exact name, then by its name in any case."""
        return self.exact.get(name) or self._by_fold.get(name.casefold())

    async def not_found(self, name: str, principal: Principal) -> ToolNotFound:
        """Make the error for an unknown name; it suggests the nearest name that the principal may know."""
        fault = self._name_rule.fault_of(name)
        if fault is not None:
            return InvalidToolName(fault)
        return ToolNotFound(name, await self.suggestion(name, principal))

    async def visible_to(self, principal: Principal) -> tuple[AnyTool, ...]:
        """Return the tools that a principal may use, or raise InternalError if the authorizer failed."""
        return tuple(binding.spec.tool for binding in await self.visible_bindings(principal))

    def served(self, registered: Iterable[AnyTool]) -> Iterable[AnyTool]:
        # The operator may have disabled some of them.
        return (tool for tool in registered if self._settings.tools.overrides_for(tool.name).enabled)

    def compile(self, item: AnyTool) -> ToolBinding:
        check_name(item, self._name_rule)
        return self._binder.bind_tool(item)

    def describe(self, binding: ToolBinding, revision: Revision) -> dict[str, Any]:
        return tool_definition(binding.spec, revision)

    def index(self, bindings: Sequence[ToolBinding]) -> None:
        self._by_fold = {binding.spec.name.casefold(): binding for binding in bindings}
        self.exact = {binding.spec.name: binding for binding in bindings}

    def index_more(self, bindings: Sequence[ToolBinding], added: Sequence[ToolBinding]) -> None:
        # In place: calls may look up names at the same time.
        self.exact.update((binding.spec.name, binding) for binding in added)
        self._by_fold.update((binding.spec.name.casefold(), binding) for binding in added)


_OPENING_BRACE = ord("{")


class ToolMethods(FeatureMethod):
    """Calls tools; the failure of a tool is a result that the model can read."""

    def __init__(
        self,
        catalogue: ToolCatalogue,
        inflight: RunningCalls,
        invalid_arguments: Literal["by_revision", "error", "result"],
    ) -> None:
        super().__init__(inflight)
        self._catalogue = catalogue
        self._invalid_arguments = invalid_arguments

    def locate(self, request: Request) -> RequestTarget:
        params = request.head.params
        if params.name is UNSET:
            raise InvalidParams('Invalid params: tools/call needs "name", the name of a tool')
        binding = self._catalogue.exact.get(params.name) or self._catalogue.find(params.name)
        raw = b"{}" if params.arguments is UNSET else bytes(params.arguments)
        if binding is None or raw[0] != _OPENING_BRACE or binding.spec.header_parameters:
            return RequestTarget(binding, raw, needs_check=True)
        return RequestTarget(binding, raw)

    async def not_found(self, request: Request) -> ProtocolError:
        name = request.head.params.name
        assert name is not UNSET
        return await self._catalogue.not_found(name, request.exchange.principal)

    async def checked(self, target: RequestTarget, request: Request) -> ToolBinding:
        """Refuse arguments that are not an object, or that differ from the headers that repeat them."""
        binding: ToolBinding = await super().checked(target, request)
        if target.raw == b"null":
            target.raw = b"{}"
        if target.raw[0] != _OPENING_BRACE:
            raise InvalidParams('Invalid params: "arguments" must be an object')
        headers = request.exchange.headers
        if headers is not None and request.era.revision.stateless:
            check_parameters(headers, binding.spec.header_parameters, target.raw)
        return binding

    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        """Make a result that is an error; invalid arguments may be an error of the protocol instead."""
        if isinstance(error, InvalidArguments):
            by_revision = request.era.revision.argument_errors_as_results
            if self._invalid_arguments == "error" or (self._invalid_arguments == "by_revision" and not by_revision):
                raise InvalidParams(error.message) from None
        return encode_error(error.message, error.meta, request)

    def reply_to_protocol_error(self, error: ProtocolError, request: Request) -> bytes:
        """Make a result of a question that the client does not support, in the revisions that have no error for it."""
        if isinstance(error, MissingCapability) and not request.era.revision.stateless:
            return encode_error(error.message, error.data, request)
        raise error
