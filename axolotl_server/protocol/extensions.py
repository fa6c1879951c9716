"""The methods that extensions add to the protocol."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from axolotl_core.arguments import NoArguments, ParseArguments
from axolotl_core.calls.context import Context
from axolotl_core.errors import InvalidArguments, MissingCapability
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.versions import REVISIONS
from axolotl_core.protocol.wire import encode, json_text
from axolotl_server.bundled import BUNDLED
from axolotl_server.calls.binding import Binder, Binding
from axolotl_server.calls.feature_method import ErrorFeatureMethod, RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.extension import Extension, ExtensionMethod
from axolotl_server.protocol.eras.era import Row
from axolotl_server.protocol.params import read_raw_params
from axolotl_server.protocol.request import Request

_RESERVED: Final = frozenset(
    {
        "completion",
        "elicitation",
        "initialize",
        "logging",
        "notifications",
        "ping",
        "prompts",
        "resources",
        "roots",
        "sampling",
        "server",
        "subscriptions",
        "tools",
        *(one.name for one in BUNDLED),
    }
)
"""The first segments of the names of the protocol's own methods."""


class _Method(IFeature):
    """A method of an extension as a feature."""

    input_model = NoArguments

    def __init__(self, name: str, extension: Extension, answer: ExtensionMethod) -> None:
        self.name = name
        self.extension = extension
        self._answer = answer

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        return _read_params

    async def execute(self, arguments: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return await self._answer(arguments, context)


class ExtensionMethods(ErrorFeatureMethod):
    """Runs the methods of extensions for clients that declare the extension."""

    def __init__(self, extensions: Iterable[Extension], binder: Binder, inflight: RunningCalls) -> None:
        super().__init__(inflight)
        self._bindings: dict[str, Binding[FeatureSpec]] = {}
        for extension in extensions:
            for name, answer in extension.methods.items():
                method = _Method(name, extension, answer)
                self._bindings[name] = binder.bind(method, "extension", name, _encode)

    @property
    def rows(self) -> Iterable[Row]:
        """The methods."""
        return (Row(name, REVISIONS, None, self.call) for name in self._bindings)

    @property
    def specs(self) -> list[FeatureSpec]:
        """The methods as features."""
        return [binding.spec for binding in self._bindings.values()]

    def locate(self, request: Request) -> RequestTarget:
        binding = self._bindings[request.head.method]
        return RequestTarget(binding, bytes(read_raw_params(request.data)), needs_check=True)

    async def checked(self, target: RequestTarget, request: Request) -> Binding[FeatureSpec]:
        """Refuse a client that did not declare the extension."""
        binding = await super().checked(target, request)
        method = binding.spec.feature
        assert isinstance(method, _Method)
        identifier = method.extension.identifier
        if request.extension(identifier) is None:
            raise MissingCapability(
                f"{method.name} needs a client with the extension {identifier}", {"extensions": {identifier: {}}}
            )
        return binding


def _read_params(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidArguments(f"Invalid params: {error}") from None


def faults_of_methods(extensions: Iterable[Extension]) -> Iterator[str]:
    """Find methods that the protocol or another extension already has."""
    known: set[str] = set()
    for extension in extensions:
        for name in extension.methods:
            if name in known or name.partition("/")[0] in _RESERVED:
                yield (
                    f"The extension {extension.identifier} adds the method {name!r}, which already exists. "
                    "Choose another name"
                )
            known.add(name)


def _encode(output: Mapping[str, Any], request: Request) -> bytes:
    """Encode a result; the revision adds the members that every result has."""
    own = {name: value for name, value in output.items() if name not in ("_meta", "resultType")}
    meta = output.get("_meta")
    closing = request.era.tail if meta is None else request.era.tail_with_meta(meta)
    if "resultType" in output:
        closing = closing.replace(b'"complete"', encode(output["resultType"]), 1)
    return json_text(own)[:-1] + closing if own else b"{" + closing.removeprefix(b",")
