"""Extensions: validation, and results of their methods."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from axolotl_core import ConfigurationError, Context
from axolotl_server import ServerHost
from axolotl_server.extension import Extension, ExtensionMethod
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.tools import Echo, Name

IDENTIFIER = "com.example/receipts"
ABLE: Mapping[str, Any] = {"extensions": {IDENTIFIER: {}}, "elicitation": {}}


class Methods(Extension):
    """An extension with given methods."""

    identifier = IDENTIFIER

    def __init__(self, **methods: ExtensionMethod) -> None:
        self._methods = {f"receipts/{name}": method for name, method in methods.items()}

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        return self._methods


def container(**methods: ExtensionMethod) -> Any:
    return container_with((Echo(),), extensions=(Methods(**methods),))


@pytest.mark.parametrize("identifier", ["receipts", "com.example/", "/x", "com..example/x", "com.example/-x", ""])
async def test_an_identifier_needs_a_domain(identifier: str) -> None:
    """The server does not start if an identifier has no domain."""
    with pytest.raises(ConfigurationError, match="identifier"):
        await ServerHost(container_with((Echo(),), extensions=(Extension(identifier),))).start()


async def test_only_extensions_are_extensions() -> None:
    """The server does not start if the role contains other objects."""
    with pytest.raises(ConfigurationError, match="extensions"):
        await ServerHost(container_with((Echo(),), extensions=("com.example/x",))).start()


@pytest.mark.parametrize(
    "method",
    ["tools/call", "tools/list", "initialize", "ping", "server/discover", "subscriptions/listen", "tasks/mine"],
)
async def test_the_methods_of_the_protocol_stay_what_they_are(method: str) -> None:
    """The server does not start if an extension defines a present or reserved method of the protocol."""

    class Greedy(Extension):
        identifier = IDENTIFIER

        @property
        def methods(self) -> Mapping[str, ExtensionMethod]:
            return {method: nothing}

    async def nothing(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {}

    with pytest.raises(ConfigurationError, match=f"adds the method '{method}', which already exists"):
        await ServerHost(container_with((Echo(),), extensions=(Greedy(),))).start()


async def test_a_method_asks_no_rounds() -> None:
    """A method of an extension cannot ask in rounds, and fails."""

    async def ask(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"name": (await context.ask(Name, "Who?")).name}

    async with conversing(container(ask=ask)) as host:
        reply = await Peer(host, capabilities=ABLE).ask("receipts/ask")
        assert reply.get("result", {}).get("resultType") != "input_required"
        assert "error" in reply


async def test_what_json_has_no_form_for_is_a_failure() -> None:
    """A result that cannot be encoded is a hidden failure."""

    async def odd(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"thing": object()}

    async with conversing(container(odd=odd)) as host:
        reply = await Peer(host, capabilities=ABLE).ask("receipts/odd")
        assert reply["error"]["code"] == -32603
        assert "object" not in reply["error"]["message"]


async def test_a_number_out_of_range_is_a_wrong_parameter() -> None:
    """Params that cannot be decoded are an error for invalid params."""

    async def echo(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"number": params["number"]}

    async with conversing(container(echo=echo)) as host:
        peer = Peer(host, capabilities=ABLE)
        request = {"jsonrpc": "2.0", "id": 1, "method": "receipts/echo", "params": {"number": "huge"}}
        peer.send("receipts/echo", {"number": 5})
        assert (await peer.receive())["result"]["number"] == 5
        await peer.shake_hands()
        peer.transport.send(json.dumps(request).replace('"huge"', "1e999").encode())
        assert (await peer.receive())["error"]["code"] == -32602
