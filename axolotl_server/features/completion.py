"""`completion/complete`: completions run as features, so that deadlines and layers apply to them too."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from axolotl_core.arguments import ParseArguments
from axolotl_core.calls.context import Context
from axolotl_core.errors import InvalidArguments, InvalidParams, ProtocolError
from axolotl_core.features.completion import CompletableFunction, Completion, ICompletable, completion_of
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.client_text import shorten
from axolotl_core.protocol.wire import encode
from axolotl_server.calls.feature_method import ErrorFeatureMethod, RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.protocol.params import CompletionParams, convert_without_nulls, read_params, read_raw_params
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.features.prompts import PromptCatalogue
    from axolotl_server.features.resources import TemplateCatalogue


class CompletionMethods(ErrorFeatureMethod):
    """Completes the arguments of prompts and the variables of resource templates."""

    def __init__(self, prompts: "PromptCatalogue", templates: "TemplateCatalogue", inflight: RunningCalls) -> None:
        super().__init__(inflight)
        self._prompts = prompts
        self._templates = templates

    def locate(self, request: Request) -> RequestTarget:
        reference = read_params(request.data, CompletionParams).ref
        if reference.type == "ref/prompt" and reference.name is not None:
            owner = self._prompts.find(reference.name)
        elif reference.type == "ref/resource" and reference.uri is not None:
            owner = self._templates.find_template(reference.uri)
        else:
            raise InvalidParams('Invalid params: "ref" must be a ref/prompt with a name or a ref/resource with a uri')
        binding = None if owner is None else owner.completion
        return RequestTarget(binding, bytes(read_raw_params(request.data)), needs_check=binding is None)

    async def not_found(self, request: Request) -> ProtocolError:
        reference = read_params(request.data, CompletionParams).ref
        if reference.type == "ref/prompt" and reference.name is not None:
            return await self._prompts.not_found(reference.name, request.exchange.principal)
        return InvalidParams(f"Invalid params: there is no resource template {shorten(str(reference.uri))}")


class _Argument(msgspec.Struct):
    name: str
    value: str


class _Context(msgspec.Struct):
    arguments: dict[str, str] = {}


class CompleteParams(msgspec.Struct):
    """The argument that a client is typing, and the arguments that it knows."""

    argument: _Argument
    context: _Context = msgspec.field(default_factory=_Context)


class CompletionFeature(IFeature):
    """The completion of a prompt's arguments or of a resource template's variables, as a feature."""

    input_model = CompleteParams

    def __init__(self, owner: ICompletable, spec: FeatureSpec) -> None:
        self.name = owner.name
        self.owner = spec
        """The feature that is completed; a caller who may not use it may not complete it either."""
        self._owner = owner
        self._arguments: Sequence[str] = tuple(owner.arguments_schema.get("properties", {}))
        self.timeout_seconds = owner.timeout_seconds
        self.tags = owner.tags
        self.scopes = owner.scopes
        if isinstance(owner, CompletableFunction) and owner.completes_without_waiting:
            self.execution = "thread"

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        read = msgspec.json.Decoder(CompleteParams).decode

        def parse(raw: bytes) -> CompleteParams:
            try:
                params = read(raw)
            except msgspec.ValidationError as error:
                params = _convert(raw, error)
            if params.argument.name not in self._arguments:
                has = ", ".join(self._arguments) or "none"
                raise InvalidArguments(
                    f"Invalid params: there is no argument {shorten(params.argument.name)!r}; available: {has}"
                )
            return params

        return parse

    async def execute(self, arguments: CompleteParams, context: Context) -> Completion:
        argument, known = arguments.argument, arguments.context.arguments
        return completion_of(await self._owner.complete(argument.name, argument.value, known))


def _convert(raw: bytes, error: msgspec.ValidationError) -> CompleteParams:
    try:
        return convert_without_nulls(msgspec.json.decode(raw), CompleteParams)
    except msgspec.ValidationError:
        raise InvalidArguments(f"Invalid params: {shorten(str(error))}") from None


def encode_completion(output: Completion, request: Request) -> bytes:
    """Encode suggestions."""
    completion: dict[str, Any] = {"values": list(map(str, output.values))}
    if output.total is not None:
        completion["total"] = output.total
    if output.has_more is not None:
        completion["hasMore"] = output.has_more
    return encode({"completion": completion})[:-1] + request.era.tail
