"""Cache hints: results that depend on the caller are private."""

from typing import Any

import pytest

from axolotl_core import CacheHint, Context, Principal, resource
from tests.support.peers.memory_peer import ACCEPTED, Peer, container_with, conversing
from tests.support.tools import Echo, Name

PUBLIC = {"caching": {"list_ttl_seconds": 10, "resource_ttl_seconds": 20, "scope": "public"}}


@resource("kept://as-set")
async def as_set() -> str:
    """Use the settings."""
    return ""


@resource("kept://shared", cache=CacheHint(30, "public"))
async def shared() -> str:
    """Return the same for every caller."""
    return ""


@resource("kept://asked", cache=CacheHint(30, "public"))
async def asked(context: Context) -> str:
    """Ask first."""
    return (await context.ask(Name, "Who?")).name


def hint(reply: Any) -> tuple[int, str]:
    return reply["result"]["ttlMs"], reply["result"]["cacheScope"]


def container() -> Any:
    return container_with((Echo(),), resources=(as_set, shared, asked))


@pytest.mark.parametrize(
    ("principal", "uri", "expected"),
    [
        (None, "kept://as-set", (20_000, "public")),
        (Principal("ann"), "kept://as-set", (20_000, "private")),
        (None, "kept://shared", (30_000, "public")),
        (Principal("ann"), "kept://shared", (30_000, "public")),
    ],
)
async def test_content_for_an_authenticated_caller_is_private(
    principal: Principal | None, uri: str, expected: tuple[int, str]
) -> None:
    """Content for an authenticated caller is private, unless its author marks it as public."""
    async with conversing(container(), settings=PUBLIC) as host:
        peer = Peer(host) if principal is None else Peer(host, principal=principal)
        assert hint(await peer.ask("resources/read", {"uri": uri})) == expected


async def test_nothing_is_cacheable_by_default() -> None:
    """By default nothing may be cached."""
    async with conversing(container()) as host:
        peer = Peer(host)
        for method in ("server/discover", "tools/list", "resources/list", "resources/templates/list"):
            assert hint(await peer.ask(method)) == (0, "private")
        assert hint(await peer.ask("resources/read", {"uri": "kept://as-set"})) == (0, "private")


async def test_an_answer_makes_a_read_private() -> None:
    """Content that depends on an answer is private, with or without a state."""
    async with conversing(container(), settings=PUBLIC) as host:
        peer = Peer(host)
        first = await peer.ask("resources/read", {"uri": "kept://asked"})
        assert not {"ttlMs", "cacheScope"} & first["result"].keys()
        answered = {"uri": "kept://asked", "inputResponses": {"ask-1": ACCEPTED}}
        assert hint(await peer.ask("resources/read", answered)) == (0, "private")
        answered["requestState"] = first["result"]["requestState"]
        assert hint(await peer.ask("resources/read", answered)) == (0, "private")
