"""Resource updates are sent only to principals who may read the resource."""

from collections.abc import Mapping
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import Principal, ResourceRegistry, resource
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from tests.support.servers.restricted_servers import ADA, GUESTS, RESOURCES, ROOT, Speaker, offering

UPDATED = "notifications/resources/updated"


@resource("files://")
async def directory() -> str:
    """A directory of the files."""
    return "files"


@resource("notes://")
async def shelf() -> str:
    """A directory of the notes."""
    return "notes"


RULES: Mapping[str, Any] = {
    "rules": [*GUESTS["rules"], {"name": "shelf", "effect": "allow", "what": {"names": ["notes://"]}}]
}


class Watched:
    """A server whose resources change."""

    def __init__(self, **said: Any) -> None:
        self.registry = ResourceRegistry([*RESOURCES, directory, shelf])
        container = offering(resources=[])
        container.resource_registry = providers.Object(self.registry)
        self.host = ServerHost(container, flags={"authorization": {**RULES, **said}})

    async def speaker(self, principal: Principal, *, handshake: bool) -> Speaker:
        speaker = Speaker(self.host, principal)
        if handshake:
            await speaker.shake_hands()
        return speaker


@pytest.mark.parametrize("principal", [ANONYMOUS, ADA])
async def test_subscribing(principal: Principal) -> None:
    """Subscribing to a hidden URI fails like for an unknown one, and no updates are sent."""
    watched = Watched()
    async with watched.host:
        speaker = await watched.speaker(principal, handshake=True)
        assert (await speaker.ask("resources/subscribe", {"uri": "notes://open"}))["result"] == {}
        for uri in ("notes://closed", "vault://gold", "nothing://here"):
            reply = await speaker.ask("resources/subscribe", {"uri": uri})
            assert reply["error"]["message"] == f"Resource not found: {uri}"
        watched.registry.updated("notes://closed")
        watched.registry.updated("vault://gold")
        watched.registry.updated("notes://open")
        assert (await speaker.receive())["params"] == {"uri": "notes://open"}
        await speaker.close()


async def test_subscribing_to_a_forbidden_resource() -> None:
    """If denied features are not hidden, the error says forbidden."""
    watched = Watched(denied_as="forbidden")
    async with watched.host:
        speaker = await watched.speaker(ADA, handshake=True)
        reply = await speaker.ask("resources/subscribe", {"uri": "vault://gold"})
        assert reply["error"]["data"] == {"reason": "forbidden"}
        await speaker.close()


async def test_listening() -> None:
    """The acknowledgement of a subscription omits denied and unknown resources."""
    watched = Watched()
    uris = ["notes://open", "notes://closed", "nothing://here", "files://a", "vault://gold"]
    wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": uris}}
    async with watched.host:
        for principal, expected in ((ADA, ["notes://open", "files://a"]), (ROOT, [*uris[:2], *uris[3:]])):
            speaker = await watched.speaker(principal, handshake=False)
            speaker.send("subscriptions/listen", wanted, id=1)
            acknowledged = (await speaker.receive())["params"]["notifications"]
            assert acknowledged == {"toolsListChanged": True, "resourceSubscriptions": expected}
            for uri in uris:
                watched.registry.updated(uri)
            assert [(await speaker.receive())["params"]["uri"] for _ in expected] == expected
            await speaker.close()


@pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
async def test_a_directory_covers_its_own_template(handshake: bool) -> None:
    """A subscription to a directory covers URIs of its own template, but not of other resources."""
    watched = Watched()
    async with watched.host:
        speaker = await watched.speaker(ADA, handshake=handshake)
        uris = ["files://a/b", "notes://"]
        if handshake:
            for uri in uris:
                assert "result" in await speaker.ask("resources/subscribe", {"uri": uri})
        else:
            speaker.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}, id=1)
            await speaker.receive()
        for uri in ("notes://closed", "files://a/b/c", "notes://open", "files://other", "notes://"):
            watched.registry.updated(uri)
        heard = [await speaker.receive(), await speaker.receive()]
        assert [(one["method"], one["params"]["uri"]) for one in heard] == [
            (UPDATED, "files://a/b/c"),
            (UPDATED, "notes://"),
        ]
        await speaker.close()


async def test_other_requests_run_while_a_subscription_is_checked() -> None:
    """The server answers other requests between the URIs of a subscription."""
    watched = Watched()
    uris = [f"files://{number}/" + "a.b/" * 400 for number in range(100)]
    async with watched.host:
        speaker = await watched.speaker(ADA, handshake=False)
        speaker.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}, id="listen")
        speaker.send("tools/list", id="list")
        assert (await speaker.receive())["id"] == "list"
        assert (await speaker.receive())["params"]["notifications"]["resourceSubscriptions"] == uris
        await speaker.close()


@pytest.mark.parametrize(
    ("uris", "message"),
    [
        pytest.param(
            ["files://a"] * 101,
            "Too many subscriptions: a request may name 100 resources; send more requests",
            id="too-many",
        ),
        pytest.param(
            ["files://a", "files://" + "a" * 2041],
            "Invalid params: a URI has 2049 characters; at most 2048 are allowed",
            id="too-long",
        ),
    ],
)
async def test_limits_of_a_subscription(uris: list[str], message: str) -> None:
    """A subscription names at most 100 resources, with at most 2048 characters each."""
    watched = Watched()
    async with watched.host:
        speaker = await watched.speaker(ADA, handshake=False)
        reply = await speaker.ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
        assert reply["error"] == {"code": -32602, "message": message}
        await speaker.close()


@pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
async def test_a_long_uri(handshake: bool) -> None:
    """A URI of more than 2048 characters is refused before it is matched."""
    watched = Watched()
    async with watched.host:
        speaker = await watched.speaker(ROOT, handshake=handshake)
        for method in ("resources/read", *(("resources/subscribe", "resources/unsubscribe") if handshake else ())):
            reply = await speaker.ask(method, {"uri": "files://" + "a" * 2041})
            assert reply["error"]["code"] == -32602
            assert reply["error"]["message"] == (
                "Invalid params: the URI has 2049 characters; at most 2048 are allowed"
            )
        assert "result" in await speaker.ask("resources/read", {"uri": "files://" + "a" * 2040})
        await speaker.close()


@pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
async def test_equivalent_spellings(handshake: bool) -> None:
    """A subscriber is notified of a change in any equivalent spelling of its URI."""
    watched = Watched()
    async with watched.host:
        speaker = await watched.speaker(ROOT, handshake=handshake)
        if handshake:
            await speaker.ask("resources/subscribe", {"uri": "FILES://%61/b%2fc"})
        else:
            uris = ["FILES://%61/b%2fc"]
            speaker.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}, id="listen")
            acknowledged = await speaker.receive()
            assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == uris
        watched.registry.updated("files://other")
        watched.registry.updated("files://a/b%2Fc")
        assert (await speaker.receive())["params"]["uri"] == "files://a/b%2Fc"
        await speaker.close()
