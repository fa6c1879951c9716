"""Resource calls: template matching, changes and large contents."""

import asyncio
import base64
import logging
import math
import threading
from typing import Any

import httpx2
import pytest

from axolotl_core import ResourceRegistry, resource
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.wire import META, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, serving


@resource("async://loop")
async def waiting() -> str:
    """Return the current thread."""
    return threading.current_thread().name


def read(uri: str, **meta: Any) -> bytes:
    return message("resources/read", {"uri": uri, "_meta": {**META, **meta}})


def text_of(reply: Any) -> str:
    text: str = reply["result"]["contents"][0]["text"]
    return text


@resource("shop://{+path}")
async def anything(path: str) -> str:
    """Match any path."""
    return f"anything {path}"


@resource("shop://{kind}/{number}")
async def numbered(kind: str, number: str) -> str:
    """Match two segments."""
    return f"numbered {kind} {number}"


@resource("shop://hats/{number}")
async def hat(number: str) -> str:
    """Match hats."""
    return f"hat {number}"


@resource("shop://hats/1")
async def first_hat() -> str:
    """Match one hat."""
    return "the first hat"


@pytest.mark.parametrize("order", [1, -1])
async def test_the_most_specific_template_wins(order: int) -> None:
    """The most specific resource or template matches, regardless of the order of registration."""
    found = (anything, numbered, hat, first_hat)[::order]
    expected = {
        "shop://hats/1": "the first hat",
        "shop://hats/2": "hat 2",
        "shop://shoes/2": "numbered shoes 2",
        "shop://shoes/2/left": "anything shoes/2/left",
    }
    async with conversing(container_with(resources=found)) as host:
        peer = Peer(host)
        for uri, text in expected.items():
            assert text_of(await peer.ask("resources/read", {"uri": uri})) == text


async def test_a_missing_resource_is_an_error_in_the_body() -> None:
    """A missing resource is an error in the body, not status 404."""
    async with (
        serving(container_with(resources=(hat,))) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        reply = await http.post(server.url, content=read("none://x"), headers=mirrored("resources/read", "none://x"))
        assert (reply.status_code, reply.json()["error"]["code"]) == (200, -32602)
        assert reply.json()["error"]["data"] == {"uri": "none://x"}


async def test_a_resource_that_comes_is_found_and_one_that_goes_is_not() -> None:
    """Reads see changes of the registry from any thread."""
    registry = ResourceRegistry([waiting])
    async with conversing(container_with(resource_registry=registry)) as host:
        peer = Peer(host)
        assert "error" in await peer.ask("resources/read", {"uri": "shop://hats/2"})
        await asyncio.to_thread(registry.register_range, (hat, first_hat))
        assert text_of(await peer.ask("resources/read", {"uri": "shop://hats/2"})) == "hat 2"
        listed = await peer.ask("resources/list")
        assert [one["uri"] for one in listed["result"]["resources"]] == ["async://loop", "shop://hats/1"]
        registry.unregister("shop://hats/{number}")
        assert "error" in await peer.ask("resources/read", {"uri": "shop://hats/2"})
        assert (await peer.ask("resources/templates/list"))["result"]["resourceTemplates"] == []


async def test_large_contents_arrive_completely() -> None:
    """Megabytes of binary content are sent as one base64 text."""
    data = bytes(range(256)) * 10_000

    @resource("big://one")
    async def big() -> bytes:
        """Be big."""
        return data

    async with conversing(container_with(resources=(big,))) as host:
        reply = await Peer(host).ask("resources/read", {"uri": "big://one"})
        assert base64.b64decode(reply["result"]["contents"][0]["blob"], validate=True) == data


@resource("rates://today")
async def rates() -> dict[str, float]:
    """Return a number that JSON does not have."""
    return {"eur": math.nan}


@resource("rates://{name}/text")
async def half(name: str) -> str:
    """Return half of a character."""
    return "\ud800"


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("rates://today", "which is not JSON: eur is nan"),
        ("rates://eur/text", "which is not JSON: a text has half of a surrogate pair"),
    ],
)
async def test_contents_that_are_no_json(caplog: pytest.LogCaptureFixture, uri: str, text: str) -> None:
    """The caller gets a reference, and the log says what is wrong and where."""
    async with conversing(container_with(resources=(rates, half))) as host:
        reply = await Peer(host).ask("resources/read", {"uri": uri})
    assert "Reference: " in reply["error"]["message"]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is None
    assert text in record.getMessage()
    assert "test_resource_calls.py:" in record.getMessage()
