"""`server.publish_contract`: the digest of the contract in the answers that describe a server."""

from pathlib import Path
from typing import Any, Final

import pytest

from axolotl_core import Approval, ConfigurationError, ITool, NoArguments, ToolContext
from axolotl_server.host import ServerHost
from axolotl_server.hosting.contract import lock_of
from tests.support.peers.memory_peer import Peer, container_with
from tests.support.tools import Echo

KEY: Final = "axolotl/contract"
PUBLISHED: Final = {"server": {"publish_contract": True}}


class Foreign(ITool[NoArguments, str]):
    """Has a schema that refers to another document."""

    name = "foreign"

    @property
    def input_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"order": {"$ref": "https://example.com/order.json"}}}

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        return ""


class Approved(Echo):
    """Needs approval."""

    name = "approved"
    requires_approval = Approval()


async def digests_of(host: ServerHost) -> list[Any]:
    """Give the digests that a stateless client and one with a handshake receive."""
    discovered = (await Peer(host).result("server/discover"))["_meta"].get(KEY)
    shaken = (await Peer(host).shake_hands()).handshake.get("_meta", {}).get(KEY)
    return [discovered, shaken]


async def test_clients_receive_the_digest() -> None:
    """Both kinds of clients receive the digest of the lock, and a new one after a change of the features."""
    async with ServerHost(container_with([Echo()]), flags=PUBLISHED) as host:
        first = lock_of(host.assembly).digest
        assert await digests_of(host) == [first, first]
        host.registry.register(Approved())
        second = lock_of(host.assembly).digest
        assert second != first
        assert await digests_of(host) == [second, second]
        host.registry.unregister("approved")
        assert await digests_of(host) == [first, first]


async def test_nothing_is_published_by_default() -> None:
    """Without the setting, answers have no digest."""
    async with ServerHost(container_with([Echo()])) as host:
        assert await digests_of(host) == [None, None]
        assert host.assembly.contract is None


async def test_a_schema_elsewhere_cannot_be_published() -> None:
    """A server whose schemas refer to other documents does not start; if one is added later, no digest is sent."""
    with pytest.raises(ConfigurationError, match=r"refers to https://example\.com/order\.json"):
        await ServerHost(container_with([Foreign()]), flags=PUBLISHED).start()
    async with ServerHost(container_with([Echo()]), flags=PUBLISHED) as host:
        host.registry.register(Foreign())
        assert await digests_of(host) == [None, None]


async def test_a_skill_is_frozen_as_a_whole(tmp_path: Path) -> None:
    """The lock has one entry per skill, whose digest depends on all of its files; the files are not listed again."""
    folder = tmp_path / "returns"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: returns\ndescription: Handle returns.\n---\nText.\n")
    (folder / "form.txt").write_text("first")
    digests = []
    for text in ("first", "second"):
        (folder / "form.txt").write_text(text)
        async with ServerHost(container_with(skills=[tmp_path])) as host:
            lock = lock_of(host.assembly)
        assert lock.resources == {}
        digests.append(lock.skills["skill://returns/SKILL.md"]["digest"])
    assert digests[0] != digests[1]


async def test_the_effective_approval_is_frozen() -> None:
    """Approval counts if the tool declares it, or if the operator requires it."""
    container = container_with([Echo(), Approved()])
    async with ServerHost(container) as host:
        declared = {name: entry["requires_approval"] for name, entry in lock_of(host.assembly).tools.items()}
    async with ServerHost(container, flags={"approval": {"tools": ["echo"]}}) as host:
        demanded = {name: entry["requires_approval"] for name, entry in lock_of(host.assembly).tools.items()}
    assert declared == {"echo": False, "approved": True}
    assert demanded == {"echo": True, "approved": True}
