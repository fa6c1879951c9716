"""The contract of a server, as it is frozen."""

from pathlib import Path
from typing import Any

import pytest

from axolotl_core import CacheHint, ConfigurationError, Context, ITool, NoArguments, resource
from axolotl_core.policies.tool_rules import Approval
from axolotl_server.host import ServerHost
from axolotl_server.hosting.contract import lock_of
from tests.support.peers.memory_peer import container_with
from tests.support.tools import Echo


class Foreign(ITool[NoArguments, str]):
    """Has a schema that refers to another document."""

    name = "foreign"

    @property
    def input_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"order": {"$ref": "https://example.com/order.json"}}}

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return ""


class Approved(Echo):
    """Needs approval."""

    name = "approved"
    requires_approval = Approval()


async def test_a_schema_elsewhere_cannot_be_frozen() -> None:
    """A schema that refers to another document can change without notice."""
    async with ServerHost(container_with([Foreign()])) as host:
        with pytest.raises(ConfigurationError, match=r"refers to https://example\.com/order\.json"):
            lock_of(host.assembly)


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


@resource("notes://plan", cache=CacheHint(60, "public"))
def plan() -> str:
    """Has a cache hint of its own."""
    return ""


async def test_the_cache_hint_of_a_resource_is_frozen() -> None:
    """Clients rely on how long a resource may be cached, so a change of it is one of the contract."""
    async with ServerHost(container_with(resources=[plan])) as host:
        assert lock_of(host.assembly).resources["notes://plan"]["cache"] == {"ttl_seconds": 60, "scope": "public"}
