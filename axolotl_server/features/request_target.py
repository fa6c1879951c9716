"""What a request is about, before anything else is looked at: the feature that it names, or that there is none."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from axolotl_core.errors import InvalidParams, ProtocolError, ResourceNotFound
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import Principal
from axolotl_server.calls.binding import Binding
from axolotl_server.features.prompts import PromptCatalogue
from axolotl_server.features.resources import ResourceCatalogue, TemplateCatalogue
from axolotl_server.features.tools import ToolCatalogue
from axolotl_server.messages.params import CompletionParams, ResourceParams, read_params, read_raw_params
from axolotl_server.messages.request import Request

_Missing: TypeAlias = Callable[[Principal], Awaitable[ProtocolError]]


class RequestTarget(NamedTuple):
    """What a request is about."""

    binding: Binding[Any] | None
    """None where there is no such feature."""
    missing: _Missing
    """Says that there is none, in words that a principal may read."""
    raw: bytes = b"{}"
    uri: str = ""
    runs: bool = True
    """Whether the feature's code is to run."""


FindTarget: TypeAlias = Callable[[Request], RequestTarget | None]
"""Finds what a request is about; None where it names nothing, which its method will complain of."""


class RequestTargets:
    """The methods that name a feature."""

    def __init__(
        self,
        tools: ToolCatalogue,
        prompts: PromptCatalogue,
        resources: ResourceCatalogue,
        templates: TemplateCatalogue,
    ) -> None:
        self._tools = tools
        self._prompts = prompts
        self._resources = resources
        self._templates = templates
        self.by_method: dict[str, FindTarget] = {
            "tools/call": self._call,
            "prompts/get": self._get,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "completion/complete": self._complete,
        }

    def behind(self, uri: str) -> Binding[Any] | None:
        """Find what is behind a URI.

        A resource stands before a template, and a template before one that is less specific, also where it may not be
        read: what is denied does not come out of another door.
        """
        found = self._templates.find(uri) if (fixed := self._resources.find(uri)) is None else None
        return fixed if found is None else found[0]

    def any_spec(self) -> FeatureSpec | None:
        """Give some feature, if there is one."""
        catalogues = (self._tools, self._prompts, self._resources, self._templates)
        return next((binding.spec for catalogue in catalogues for binding in catalogue.bindings()), None)

    def _call(self, request: Request) -> RequestTarget | None:
        params = request.head.params
        if params.name is UNSET:
            return None
        missing = partial(self._tools.unknown, params.name)
        return RequestTarget(self._tools.try_find(params.name), missing, bytes(params.arguments))

    def _get(self, request: Request) -> RequestTarget | None:
        params = request.head.params
        if params.name is UNSET:
            return None
        missing = partial(self._prompts.unknown, params.name)
        return RequestTarget(self._prompts.try_find(params.name), missing, bytes(params.arguments))

    def _read(self, request: Request) -> RequestTarget:
        uri = read_params(request.data, ResourceParams).uri
        return RequestTarget(self.behind(uri), _always(partial(ResourceNotFound, uri)), uri=uri)

    def _subscribe(self, request: Request) -> RequestTarget:
        uri = read_params(request.data, ResourceParams).uri
        return RequestTarget(self.behind(uri), _always(partial(ResourceNotFound, uri)), uri=uri, runs=False)

    def _complete(self, request: Request) -> RequestTarget | None:
        reference = read_params(request.data, CompletionParams).ref
        raw = bytes(read_raw_params(request.data))
        if reference.type == "ref/prompt" and reference.name is not None:
            prompt = self._prompts.try_find(reference.name)
            missing = partial(self._prompts.unknown, reference.name)
            return RequestTarget(None if prompt is None else prompt.completion, missing, raw)
        if reference.type == "ref/resource" and reference.uri is not None:
            template = self._templates.named(reference.uri)
            text = f"Invalid params: there is no resource template {reference.uri}"
            return RequestTarget(
                None if template is None else template.completion, _always(partial(InvalidParams, text)), raw
            )
        return None


def _always(make: Callable[[], ProtocolError]) -> _Missing:
    async def missing(principal: Principal) -> ProtocolError:
        return make()

    return missing
