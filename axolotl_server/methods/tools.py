"""`tools/list` and `tools/call`."""

from typing import Literal

from msgspec import UNSET

from axolotl_core.errors import InvalidArguments, InvalidParams, MissingCapability, ProtocolError, ToolError
from axolotl_core.spec import ToolSpec
from axolotl_server.binding import ToolBinding
from axolotl_server.catalogues.tools import ToolCatalogue
from axolotl_server.eras.mirrored import check_parameters
from axolotl_server.inflight import InFlight
from axolotl_server.invocation import Invocation
from axolotl_server.methods.params import ListParams, read_params
from axolotl_server.request import Request
from axolotl_server.results import encode_error

__all__ = ["ToolMethods"]

_OPENING_BRACE = ord("{")


class ToolMethods(Invocation):
    """Lists tools and calls them; what goes wrong inside a tool is a result for the model to read."""

    def __init__(
        self,
        catalogue: ToolCatalogue,
        inflight: InFlight,
        invalid_arguments: Literal["by_revision", "error", "result"],
    ) -> None:
        super().__init__(inflight)
        self._catalogue = catalogue
        self._invalid_arguments = invalid_arguments

    async def list(self, request: Request) -> bytes:
        """Give a page of the list."""
        cursor = read_params(request.data, ListParams).cursor
        return await self._catalogue.page(request.era, cursor, request.exchange.principal)

    def find(self, request: Request) -> tuple[ToolBinding, bytes, str]:
        """Find a tool by its name."""
        params = request.head.params
        if params.name is UNSET:
            raise InvalidParams('Invalid params: tools/call needs "name", the name of a tool')
        binding = self._catalogue.by_name[params.name]
        raw = bytes(params.arguments)
        if raw[0] != _OPENING_BRACE or binding.spec.header_parameters:
            _check_arguments(binding.spec, raw, request)
        return binding, raw, ""

    def tell(self, error: ToolError, request: Request) -> bytes:
        """Write a result that is an error, except for arguments where the revision wants otherwise."""
        if isinstance(error, InvalidArguments) and not self._as_result(request):
            raise InvalidParams(error.message) from None
        return encode_error(error.message, error.meta, request.era)

    def tell_protocol_error(self, error: ProtocolError, request: Request) -> bytes:
        """Tell the model that its client cannot be asked, in the revisions that have no code for it."""
        if isinstance(error, MissingCapability) and not request.era.revision.stateless:
            return encode_error(error.message, error.data, request.era)
        raise error

    def _as_result(self, request: Request) -> bool:
        if self._invalid_arguments == "by_revision":
            return request.era.revision.argument_errors_as_results
        return self._invalid_arguments == "result"


def _check_arguments(spec: ToolSpec, raw: bytes, request: Request) -> None:
    if raw[0] != _OPENING_BRACE:
        raise InvalidParams('Invalid params: "arguments" must be an object')
    headers = request.exchange.headers
    if headers is not None and request.era.revision.stateless:
        check_parameters(headers, spec.header_parameters, raw)
