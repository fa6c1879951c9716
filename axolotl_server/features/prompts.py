"""`prompts/list` and `prompts/get`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from axolotl_core.errors import InvalidParams, PromptNotFound, ProtocolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.prompts import PromptResult
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyPrompt
from axolotl_server.calls.binding import Binding
from axolotl_server.calls.feature_method import ErrorFeatureMethod, RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.completion import CompletionFeature, encode_completion
from axolotl_server.protocol.eras.presentation import content_for, prompt_definition
from axolotl_server.protocol.params import PromptParams, read_params
from axolotl_server.protocol.request import Request


class PromptCatalogue(Catalogue[AnyPrompt, FeatureSpec]):
    """Finds prompts by name and lists them."""

    field = "prompts"
    method_prefix = "prompts"

    _by_fold: Mapping[str, Binding[FeatureSpec]]

    def find(self, name: str) -> Binding[FeatureSpec] | None:
        """Find a prompt by its name in any case."""
        return self._by_fold.get(name.casefold())

    async def not_found(self, name: str, principal: Principal) -> PromptNotFound:
        """Make the error for an unknown name; it suggests the nearest name that the principal may know."""
        return PromptNotFound(name, await self.suggestion(name, principal))

    def served(self, registered: Iterable[AnyPrompt]) -> Iterable[AnyPrompt]:
        return registered

    def compile(self, item: AnyPrompt) -> Binding[FeatureSpec]:
        bound = self._binder.bind(item, "prompt", item.name, _encode_messages)
        completing = CompletionFeature(item, bound.spec)
        completion = self._binder.bind(completing, "completion", item.name, encode_completion)
        return msgspec.structs.replace(bound, completion=completion)

    def describe(self, binding: Binding[FeatureSpec], revision: Revision) -> dict[str, Any]:
        return prompt_definition(cast("AnyPrompt", binding.spec.feature), revision)

    def index(self, bindings: Sequence[Binding[FeatureSpec]]) -> None:
        self._by_fold = {binding.spec.name.casefold(): binding for binding in bindings}


def _encode_messages(output: PromptResult, request: Request) -> bytes:
    era = request.era
    messages = [{"role": one.role, "content": content_for(one.block, era.revision)} for one in output.messages]
    result: dict[str, Any] = {"messages": messages}
    if output.description is not None:
        result["description"] = output.description
    return encode(result)[:-1] + (era.tail if output.meta is None else era.tail_with_meta(output.meta))


class PromptMethods(ErrorFeatureMethod):
    """Renders prompts."""

    def __init__(self, catalogue: PromptCatalogue, inflight: RunningCalls) -> None:
        super().__init__(inflight)
        self._catalogue = catalogue

    def locate(self, request: Request) -> RequestTarget:
        params = request.head.params
        if params.name is UNSET:
            raise InvalidParams('Invalid params: prompts/get needs "name", the name of a prompt')
        raw = b"{}" if params.arguments is UNSET else bytes(params.arguments)
        if raw == b"null":
            raw = b"{}"
        return RequestTarget(self._catalogue.find(params.name), raw, needs_check=True)

    async def not_found(self, request: Request) -> ProtocolError:
        name = request.head.params.name
        assert name is not UNSET
        return await self._catalogue.not_found(name, request.exchange.principal)

    async def checked(self, target: RequestTarget, request: Request) -> Binding[FeatureSpec]:
        """Refuse arguments that are not strings, whatever the prompt converts them to."""
        binding = await super().checked(target, request)
        read_params(request.data, PromptParams)
        return binding
