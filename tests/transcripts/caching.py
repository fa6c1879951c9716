"""Resources with cache hints."""

from dependency_injector import containers, providers

from axolotl_core import CacheHint, Context, prompt, resource, tool
from tests.transcripts.asking import Name


@tool
async def nothing() -> str:
    """Be listed."""
    return ""


@prompt
async def text() -> str:
    """Be listed."""
    return "text"


@resource("kept://as-set")
async def as_set() -> str:
    return "as set"


@resource("kept://longer", cache=CacheHint(3600))
async def longer() -> str:
    return "longer"


@resource("kept://shared", cache=CacheHint(1.5, "public"))
async def shared() -> str:
    return "shared"


@resource("kept://never", cache=CacheHint(0))
async def never() -> str:
    return "never"


@resource("kept://of/{owner}", cache=CacheHint(2))
async def of_owner(owner: str) -> str:
    return owner


@resource("kept://asked", cache=CacheHint(60, "public"))
async def asked(context: Context) -> str:
    return (await context.ask(Name, "Who?")).name


class Container(containers.DeclarativeContainer):
    """A server with cache hints and small pages."""

    settings = providers.Object(
        {
            "server": {"name": "transcripts", "version": "1"},
            "caching": {"list_ttl_seconds": 60, "resource_ttl_seconds": 5.5, "scope": "public"},
        }
    )
    tools = providers.List(providers.Object(nothing))
    prompts = providers.List(providers.Object(text))
    resources = providers.List(
        providers.Object(as_set),
        providers.Object(longer),
        providers.Object(shared),
        providers.Object(never),
        providers.Object(of_owner),
        providers.Object(asked),
    )
