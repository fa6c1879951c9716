"""`completion/complete`."""

from axolotl_core.errors import InvalidParams
from axolotl_core.spec import FeatureSpec
from axolotl_server.binding import Binding
from axolotl_server.catalogues.prompts import PromptCatalogue
from axolotl_server.catalogues.resources import TemplateCatalogue
from axolotl_server.inflight import InFlight
from axolotl_server.methods.params import CompletionParams, read_params, read_raw_params
from axolotl_server.methods.told import ErrorTelling
from axolotl_server.request import Request

__all__ = ["CompletionMethods"]


class CompletionMethods(ErrorTelling):
    """Completes the arguments of prompts and the variables of resource templates."""

    def __init__(self, prompts: PromptCatalogue, templates: TemplateCatalogue, inflight: InFlight) -> None:
        super().__init__(inflight)
        self._prompts = prompts
        self._templates = templates

    def find(self, request: Request) -> tuple[Binding[FeatureSpec], bytes, str]:
        """Find what knows the argument."""
        reference = read_params(request.data, CompletionParams).ref
        raw = bytes(read_raw_params(request.data))
        if reference.type == "ref/prompt" and reference.name is not None:
            return self._prompts.find(reference.name).completion, raw, ""
        if reference.type == "ref/resource" and reference.uri is not None:
            binding = self._templates.named(reference.uri)
            if binding is not None:
                return binding.completion, raw, ""
            raise InvalidParams(f"Invalid params: there is no resource template {reference.uri}")
        raise InvalidParams('Invalid params: "ref" must be a ref/prompt with a name or a ref/resource with a uri')
