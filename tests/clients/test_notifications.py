"""Progress, log messages and list changes."""

from typing import Any

import pytest
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import (
    LoggingLevel,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)

from tests.support.clients.client_adapters import IPeer, OfficialPeer
from tests.support.clients.client_routes import LISTENING_WAYS, by_every_way, by_handshake_ways
from tests.support.clients.simulated_user import Progress, soon

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LISTS = ("tools", "prompts", "resources")
NOTICES: tuple[Any, ...] = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)
EVENTS = (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged())


async def names(peer: IPeer, kind: str) -> list[str]:
    listed: Any = await {"tools": peer.tools, "prompts": peer.prompts, "resources": peer.resources}[kind]()
    return [feature.name for feature in listed]


@by_every_way
async def test_progress_arrives(peer: IPeer) -> None:
    """Progress of a fast tool is throttled; it increases, and the last value always arrives."""
    for total in (1000, None):
        progress = Progress()
        await peer.call("climb", {"steps": 1000, "total": total}, progress)
        await progress.reached(1000)
        values = [value for value, _, _ in progress.heard]
        assert values == sorted(set(values))
        assert len(values) < 1000
        assert progress.heard[0] == (1, total, "step 1")
        assert progress.heard[-1] == (1000, total, "step 1000")


@by_every_way
async def test_logs_arrive_from_the_wanted_level_on(peer: IPeer) -> None:
    """A client receives log messages from the level that it has set."""
    level: LoggingLevel
    for level in ("warning", "debug", "emergency"):
        peer.person.logs.clear()
        await peer.want_logs(level)
        await peer.call("chatter")
        assert [log.level for log in peer.person.logs] == list(LEVELS[LEVELS.index(level) :])
        assert peer.person.logs[-1].data == {"said": "emergency"}
        assert peer.person.logs[-1].logger == "chatter"


@by_handshake_ways
async def test_a_session_hears_of_changed_lists(peer: IPeer) -> None:
    """A client in a session is notified of every added or removed feature, and then sees the new list."""
    for kind, notice in zip(LISTS, NOTICES, strict=True):
        name = f"{kind}-for-{peer.way}"
        await peer.call("put", {"kind": kind, "name": name})
        await peer.person.next_notice(notice)
        assert name in await names(peer, kind)
        await peer.call("take", {"kind": kind, "name": name})
        await peer.person.next_notice(notice)
        assert name not in await names(peer, kind)


@pytest.mark.parametrize("peer", LISTENING_WAYS, ids=str, indirect=True)
async def test_a_listener_hears_of_changed_lists(peer: OfficialPeer) -> None:
    """A client that listens for list changes is notified, and then sees the new list."""
    listening = peer.client.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
    async with listening as changes:
        for kind, event in zip(LISTS, EVENTS, strict=True):
            name = f"{kind}-for-{peer.way}"
            await peer.call("put", {"kind": kind, "name": name})
            assert await soon(anext(changes)) == event
            assert name in await names(peer, kind)
            await peer.call("take", {"kind": kind, "name": name})
            assert await soon(anext(changes)) == event
            assert name not in await names(peer, kind)


@pytest.mark.parametrize("peer", LISTENING_WAYS, ids=str, indirect=True)
async def test_a_listener_hears_of_nothing_else(peer: OfficialPeer) -> None:
    """A client that listens for one list gets no notifications for another."""
    async with peer.client.listen(prompts_list_changed=True) as changes:
        assert changes.honored.prompts_list_changed
        assert not changes.honored.tools_list_changed
        for kind in LISTS:
            await peer.call("put", {"kind": kind, "name": f"{kind}-unheard-by-{peer.way}"})
        assert await soon(anext(changes)) == PromptsListChanged()
        await peer.call("take", {"kind": "prompts", "name": f"prompts-unheard-by-{peer.way}"})
        assert await soon(anext(changes)) == PromptsListChanged()
    for kind in LISTS:
        await peer.call("take", {"kind": kind, "name": f"{kind}-unheard-by-{peer.way}"})
