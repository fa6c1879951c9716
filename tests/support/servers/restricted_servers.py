"""Servers with authorization rules, and clients of both eras."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dependency_injector import containers, providers
from hypothesis import strategies as st

from axolotl_core import Principal, ToolAnnotations, prompt, resource, tool
from axolotl_core.features.spec import FeatureSpec, Limits, ToolSpec
from axolotl_core.policies.access import IAuthorizer
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from axolotl_server.access.rules import DefaultAuthorizer
from axolotl_server.settings.policies import AuthorizationSettings
from tests.support.peers.memory_peer import Peer

ADA = Principal("ada", "acme", frozenset({"books"}), frozenset({"clerk"}))
ROOT = Principal("root", roles=frozenset({"admin"}))
PLAIN = Limits(timeout_seconds=1.0, max_concurrency=None, execution="loop", coerce_arguments=False)


@tool(annotations=ToolAnnotations(read_only=True))
async def look(text: str = "") -> str:
    """Read something."""
    return f"saw {text}"


@tool(tags=frozenset({"money"}), annotations=ToolAnnotations(destructive=True))
async def refund(amount: int) -> str:
    """Pay something back."""
    return f"paid {amount}"


@tool(annotations=ToolAnnotations(destructive=False))
async def note(text: str = "") -> str:
    """Write something."""
    return f"wrote {text}"


@tool
async def refurbish() -> str:
    """A tool without annotations."""
    return "done"


@prompt
async def greet(name: str = "you") -> str:
    """Greet."""
    return f"Greet {name}"


@greet.completes("name")
async def complete_name(value: str) -> list[str]:
    """Complete the name."""
    return [f"{value}!"]


@prompt
async def grieve() -> str:
    """Grieve."""
    return "Grieve"


@resource("notes://open")
async def open_notes() -> str:
    """Open to all."""
    return "open"


@resource("notes://closed")
async def closed_notes() -> str:
    """Closed to most."""
    return "closed"


@resource("files://{+path}")
async def files(path: str) -> str:
    """A file."""
    return path


@resource("vault://{name}")
async def vault(name: str) -> str:
    """The content of the vault."""
    return name


TOOLS = (look, refund, note, refurbish)
PROMPTS = (greet, grieve)
RESOURCES = (open_notes, closed_notes, files, vault)

GUESTS: Mapping[str, Any] = {
    "rules": [
        {"name": "admins", "effect": "allow", "who": {"roles": ["admin"]}},
        {"name": "open", "effect": "allow", "what": {"names": ["look", "greet", "notes://open", "files://*"]}},
    ]
}
"""Admins may use everything, other callers a little."""


words = st.sets(st.sampled_from(["a", "b", "c"]), min_size=1).map(sorted)
principals = st.builds(
    Principal,
    st.sampled_from(["a", "b", "anonymous"]),
    st.none() | st.sampled_from(["a", "b"]),
    words.map(frozenset) | st.just(frozenset()),
    words.map(frozenset) | st.just(frozenset()),
)
whos = st.fixed_dictionaries(
    {}, optional={"subjects": words, "tenants": words, "roles": words, "scopes": words, "anonymous": st.booleans()}
)
whats = st.fixed_dictionaries(
    {},
    optional={
        "names": st.sets(st.sampled_from(["look", "re*", "*://*", "greet", "notes://open", "RE?UND"]), min_size=1).map(
            sorted
        ),
        "kinds": st.sets(st.sampled_from(["tool", "prompt", "resource"]), min_size=1).map(sorted),
        "tags": st.just(["money"]),
        "destructive": st.booleans(),
        "read_only": st.booleans(),
    },
)
rule_lists = st.lists(
    st.fixed_dictionaries({"effect": st.sampled_from(["allow", "deny"]), "who": whos, "what": whats}), max_size=6
).map(lambda rules: [{"name": str(number), **rule} for number, rule in enumerate(rules)])


def spec_of(feature: Any, toolset: str | None = None) -> FeatureSpec:
    """Create the spec of one of the features above."""
    if feature in PROMPTS:
        return FeatureSpec(feature, "prompt", feature.name, PLAIN, toolset)
    if feature in RESOURCES:
        name = feature.uri if hasattr(feature, "uri") else feature.uri_template
        return FeatureSpec(feature, "resource", name, PLAIN, toolset)
    return ToolSpec.of(feature, PLAIN, toolset)


def policy_of(*rules: Mapping[str, Any], default: str = "deny") -> DefaultAuthorizer:
    """Create the compiled policy."""
    return DefaultAuthorizer(AuthorizationSettings.model_validate({"rules": rules, "default": default}))


def offering(
    *,
    tools: Sequence[Any] = TOOLS,
    prompts: Sequence[Any] = PROMPTS,
    resources: Sequence[Any] = RESOURCES,
    authorizer: IAuthorizer | None = None,
) -> containers.DynamicContainer:
    """Create a container with features, and with an authorizer if there is one."""
    container = containers.DynamicContainer()
    container.tools = providers.Object(tools)
    container.prompts = providers.Object(prompts)
    container.resources = providers.Object(resources)
    if authorizer is not None:
        container.authorizer = providers.Object(authorizer)
    return container


class Served(containers.DeclarativeContainer):
    """A server with a policy whose stdio client is an admin."""

    settings = providers.Object(
        {"authorization": GUESTS, "stdio": {"principal": {"subject": "operator", "roles": ["admin"]}}}
    )
    tools = providers.Object(TOOLS)
    prompts = providers.Object(PROMPTS)
    resources = providers.Object(RESOURCES)


class ServedToAll(Served):
    """The same for any client."""

    settings = providers.Object({"authorization": GUESTS})


class Speaker(Peer):
    """A client whose replies have no id, so that they can be compared."""

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, id: int | str | None = None, **meta: Any
    ) -> Any:
        reply = await super().ask(method, params, id=id, **meta)
        del reply["id"]
        return reply

    async def listed(self, kind: str) -> list[str]:
        """Return the names or URIs of a list, page by page."""
        names: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            result = (await self.ask(f"{kind}/list", cursor))["result"]
            (items,) = (value for key, value in result.items() if isinstance(value, list))
            names += [item.get("uri") or item.get("uriTemplate") or item["name"] for item in items]
            if "nextCursor" not in result:
                return names
            cursor = {"cursor": result["nextCursor"]}


@asynccontextmanager
async def speaking(
    authorization: Mapping[str, Any],
    principal: Principal = ANONYMOUS,
    *,
    handshake: bool = False,
    container: containers.Container | None = None,
    **settings: Any,
) -> AsyncIterator[Speaker]:
    """Start a server and connect to it."""
    flags = {"authorization": authorization, **settings}
    async with ServerHost(offering() if container is None else container, flags=flags) as host:
        speaker = Speaker(host, principal)
        if handshake:
            await speaker.shake_hands()
        try:
            yield speaker
        finally:
            await speaker.close()
