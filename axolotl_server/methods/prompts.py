"""`prompts/list` and `prompts/get`."""

from msgspec import UNSET

from axolotl_core.errors import InvalidParams
from axolotl_core.spec import FeatureSpec
from axolotl_server.binding import Binding
from axolotl_server.catalogues.prompts import PromptCatalogue
from axolotl_server.inflight import InFlight
from axolotl_server.methods.params import ListParams, PromptParams, read_params
from axolotl_server.methods.told import ErrorTelling
from axolotl_server.request import Request

__all__ = ["PromptMethods"]


class PromptMethods(ErrorTelling):
    """Lists prompts and renders them."""

    def __init__(self, catalogue: PromptCatalogue, inflight: InFlight) -> None:
        super().__init__(inflight)
        self._catalogue = catalogue

    async def list(self, request: Request) -> bytes:
        """Give a page of the list."""
        cursor = read_params(request.data, ListParams).cursor
        return await self._catalogue.page(request.era, cursor, request.exchange.principal)

    def find(self, request: Request) -> tuple[Binding[FeatureSpec], bytes, str]:
        """Find a prompt by its name."""
        params = request.head.params
        if params.name is UNSET:
            raise InvalidParams('Invalid params: prompts/get needs "name", the name of a prompt')
        binding = self._catalogue.find(params.name)
        read_params(request.data, PromptParams)  # arguments are texts, whatever the prompt makes of them
        return binding, bytes(params.arguments), ""
