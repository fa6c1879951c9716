"""Rules, scopes, tool sets, audit and collisions of skills."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, Principal, resource
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.access import Decision, IAuthorizer
from axolotl_core.resources.skills import ISkill
from axolotl_server import RemoteError, connect


class Guide(ISkill):
    """A skill with two files."""

    def __init__(self, name: str = "guide", **attributes: Any) -> None:
        self.uri = f"skill://{name}/SKILL.md"
        self.frontmatter = {"name": name, "description": "Read it first."}
        vars(self).update(attributes)

    async def files(self) -> Mapping[str, bytes]:
        return {"SKILL.md": b"---\n", "plan.md": b"plan"}


class Container(containers.DeclarativeContainer):
    """Skills in two sets, one of which needs a scope."""

    skills = providers.Aggregate(
        open=providers.List(providers.Singleton(Guide)),
        staff=providers.List(providers.Singleton(Guide, "manual", scopes=frozenset({"staff"}))),
    )


STAFF = Principal("ann", scopes=frozenset({"staff"}))


async def names(
    principal: Principal, settings: Mapping[str, Any], container: Any = Container, **options: Any
) -> list[str]:
    async with connect(container(), principal=principal, settings=settings, **options) as client:
        return [skill["frontmatter"]["name"] for skill in await client.list_skills()]


async def test_scopes() -> None:
    """A skill whose scopes the caller lacks is not listed."""
    settings = {"authorization": {"default": "allow"}}
    assert await names(STAFF, settings) == ["guide", "manual"]
    assert await names(Principal("bob"), settings) == ["guide"]


@pytest.mark.parametrize(
    ("what", "visible"),
    [
        ({"kinds": ["skill"]}, ["guide"]),
        ({"kinds": ["resource"]}, []),
        ({"toolsets": ["open"]}, ["guide"]),
        ({"toolsets": ["staff"]}, []),
        ({"names": ["skill://guide/*"]}, ["guide"]),
        ({"names": ["skill://guide/SKILL.md"]}, []),
    ],
    ids=str,
)
async def test_rules(what: Mapping[str, Any], visible: list[str]) -> None:
    """Rules allow skills by kind, tool set and the URIs of their files; one denied file hides the skill."""
    rules = [{"name": "some", "effect": "allow", "what": what}]
    assert await names(Principal("bob"), {"authorization": {"default": "deny", "rules": rules}}) == visible


async def test_tool_sets() -> None:
    """Only the skills of the selected tool sets are served."""
    assert await names(STAFF, {}, toolsets=["staff"]) == ["manual"]


class Doorman(IAuthorizer):
    """Allows what does not contain a word."""

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        return Decision("plan" not in spec.name, "doorman", "")


class Judged(Container):
    """The same skills, with an authorizer of the container."""

    authorizer = providers.Singleton(Doorman)


async def test_own_authorizer() -> None:
    """An authorizer is asked about every file."""
    assert await names(STAFF, {}, Judged) == []
    async with connect(Judged()) as client:
        with pytest.raises(RemoteError, match=r"there is no skill skill://guide/SKILL\.md"):
            await client.request("skills/get", {"uri": "skill://guide/SKILL.md"})


async def test_audit(tmp_path: Path) -> None:
    """Entries, files and directories are recorded with the kind `skill`; lists are not recorded."""
    log = tmp_path / "audit.jsonl"
    async with connect(Container(), settings={"audit": {"jsonl_path": str(log)}}) as client:
        await client.list_skills()
        await client.request("skills/get", {"uri": "skill://guide/SKILL.md"})
        await client.request("resources/directory/read", {"uri": "skill://guide"})
        await client.read_resource("skill://guide/plan.md")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    ended = [(record["kind"], record["name"]) for record in records if record.get("outcome") == "ok"]
    assert ended == [
        ("skill", "skill://guide/SKILL.md"),
        ("skill", "skill://guide/SKILL.md"),
        ("skill", "skill://guide/plan.md"),
    ]


@resource("skill://guide/plan.md")
async def plan() -> str:
    return ""


async def test_collisions() -> None:
    """A skill cannot take the URI of another one, or of a resource."""

    class Twice(containers.DeclarativeContainer):
        skills = providers.List(providers.Singleton(Guide), providers.Factory(Guide))
        resources = providers.List(providers.Object(plan))

    with pytest.raises(ConfigurationError) as caught:
        async with connect(Twice()):
            pass
    assert [finding.partition(" (")[0] for finding in caught.value.findings] == [
        "Two resources have the same name: 'skill://guide/plan.md'",
        "Two resources have the same name: 'skill://guide/SKILL.md'",
        "Two resources have the same name: 'skill://guide/plan.md'",
    ]
