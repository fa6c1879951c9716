"""A server with every kind of feature, and tools that change its features."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from dependency_injector import containers, providers

from axolotl_core import (
    CacheHint,
    Completion,
    Context,
    PromptMessage,
    PromptRegistry,
    ResourceNotFound,
    ResourceRegistry,
    ToolRegistry,
    prompt,
    resource,
    resources_of,
    tool,
    tools_of,
)
from axolotl_core.content import Annotations, EmbeddedResource, ImageContent, TextContent, TextResource
from axolotl_core.prompts import PromptResult
from tests.support.clients.asking_tools import ASKING_TOOLS, Word
from tests.support.clients.slow_tools import WORKING_TOOLS

LOGO: Final = b"\x89PNG\r\n\x1a\n\x00\xff"
PAGE: Final = "<!doctype html><title>Dashboard</title>"
CITIES: Final[Mapping[str, tuple[str, ...]]] = {"france": ("Paris", "Pau", "Nice"), "peru": ("Lima", "Paita")}
SETTINGS: Final[dict[str, Any]] = {
    "server": {"name": "features", "instructions": "Try everything"},
    "http": {"sse_path": "/sse"},
    "protocol": {"ascii_names": False},
}


@prompt(title="Code review")
async def review(language: Literal["python", "perl", "rust"], strict: bool = False) -> str:
    """Ask for a review.

    Args:
        language: What the code is written in.
        strict: Whether to be strict.
    """
    return f"Review this {language} code{', strictly' if strict else ''}."


@prompt
async def trip(country: str, city: str) -> list[PromptMessage | ImageContent | EmbeddedResource]:
    """Plan a trip."""
    return [
        PromptMessage("user", TextContent(f"Take me to {city} in {country}")),
        PromptMessage("assistant", TextContent("With pleasure")),
        ImageContent(LOGO, "image/png"),
        EmbeddedResource(TextResource("guide://trip", "Pack light", "text/plain")),
    ]


@trip.completes("country")
def countries(value: str) -> Completion:
    """Suggest two of many values."""
    return Completion([name for name in CITIES if name.startswith(value)], total=195, has_more=True)


@trip.completes("city")
async def cities(value: str, known: Mapping[str, str]) -> list[str]:
    """Suggest cities of the given country."""
    return [city for city in CITIES.get(known.get("country", ""), ()) if city.startswith(value)]


@prompt
async def interview(context: Context) -> PromptResult:
    """Ask before rendering."""
    subject = (await context.ask(Word, "About what?")).word
    return PromptResult([PromptMessage("user", TextContent(f"Talk about {subject}"))], description=f"About {subject}")


@resource("config://app", title="Configuration", annotations=Annotations(audience=("user",), priority=0.5))
async def config() -> dict[str, bool]:
    """The configuration of the application."""
    return {"debug": True}


@resource("logo://axolotl", mime_type="image/png", size=len(LOGO))
async def logo() -> bytes:
    """The logo."""
    return LOGO


@resource("users://{user_id}/profile{?full}")
async def profile(user_id: int, full: bool = False) -> dict[str, int | bool]:
    """The profile of a user."""
    return {"id": user_id, "full": full}


@resource("letter://sealed")
async def letter(context: Context) -> str:
    """A letter that needs a password."""
    return f"Opened with {(await context.ask(Word, 'The password?')).word}"


@resource("ui://dashboard")
async def page() -> str:
    """The page of a tool."""
    return PAGE


@tool(app="ui://dashboard")
async def dashboard(context: Context) -> str:
    """Return whether the client shows pages."""
    return str(context.client_extension("io.modelcontextprotocol/ui"))


class Notes:
    """Texts that tools change and clients subscribe to."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._texts = {"shopping": "milk"}
        self._reads = 0

    @resource("notes://{name}", mime_type="text/plain")
    async def note(self, name: str, context: Context) -> str:
        """A note."""
        if name not in self._texts:
            raise ResourceNotFound(context.uri)
        return self._texts[name]

    @note.completes("name")
    def names(self, value: str) -> list[str]:
        """Suggest existing notes."""
        return sorted(name for name in self._texts if name.startswith(value))

    @resource("count://reads", cache=CacheHint(ttl_seconds=60))
    async def reads(self) -> str:
        """The number of reads."""
        self._reads += 1
        return str(self._reads)

    @tool
    async def write_note(self, name: str, text: str) -> None:
        """Change a note and notify its subscribers."""
        self._texts[name] = text
        self._registry.updated(f"notes://{name}")


class Shelf:
    """Adds and removes features."""

    def __init__(self, tools: ToolRegistry, prompts: PromptRegistry, resources: ResourceRegistry) -> None:
        self._tools = tools
        self._prompts = prompts
        self._resources = resources

    @tool
    async def put(self, kind: Literal["tools", "prompts", "resources"], name: str) -> None:
        """Add a feature."""

        async def answer() -> str:
            """A temporary feature."""
            return name

        if kind == "tools":
            self._tools.register(tool(name=name)(answer))
        elif kind == "prompts":
            self._prompts.register(prompt(name=name)(answer))
        else:
            self._resources.register(resource(f"shelf://{name}", name=name)(answer))

    @tool
    async def take(self, kind: Literal["tools", "prompts", "resources"], name: str) -> None:
        """Remove a feature."""
        if kind == "tools":
            self._tools.unregister(name)
        elif kind == "prompts":
            self._prompts.unregister(name)
        else:
            self._resources.unregister(f"shelf://{name}")


class Container(containers.DeclarativeContainer):
    """All features, and the registries that some of them change."""

    settings = providers.Object(SETTINGS)
    tool_registry = providers.Singleton(ToolRegistry)
    prompt_registry = providers.Singleton(PromptRegistry)
    resource_registry = providers.Singleton(ResourceRegistry)
    notes = providers.Singleton(Notes, resource_registry)
    shelf = providers.Singleton(Shelf, tool_registry, prompt_registry, resource_registry)

    tools = providers.List(
        providers.Object(ASKING_TOOLS),
        providers.Object(WORKING_TOOLS),
        providers.Object(dashboard),
        providers.Callable(tools_of, notes),
        providers.Callable(tools_of, shelf),
    )
    prompts = providers.List(providers.Object((review, trip, interview)))
    resources = providers.List(
        providers.Object((config, logo, profile, letter, page)), providers.Callable(resources_of, notes)
    )
