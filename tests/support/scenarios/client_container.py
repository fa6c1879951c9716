"""Tools, clients and fixtures for client."""

import asyncio
from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import (
    CacheHint,
    Context,
    Declined,
    PromptMessage,
    PromptRegistry,
    ResourceRegistry,
    prompt,
    resource,
    tool,
)
from axolotl_core.content import BlobResource, TextContent, TextResource
from tests.support.tools import Probe


class Size(BaseModel):
    size: Literal["small", "large"]
    note: str | None = None


class Sure(BaseModel):
    sure: bool


@tool
async def order(context: Context) -> str:
    """Ask for a size, and then for a confirmation."""
    size = await context.ask(Size, "Which size?")
    sure = await context.ask(Sure, f"Really {size.size}?", key="sure")
    return f"{size.size}: {sure.sure}"


@tool
async def polite(context: Context) -> str:
    """Ask, and handle a declined question."""
    try:
        await context.ask(Size, "Which size?")
    except Declined as refusal:
        return refusal.action
    return "accept"


@tool
async def sign_in(context: Context) -> str:
    """Have a page opened."""
    await context.ask_url("https://example.com/sign-in", "Sign in")
    return "signed in"


@tool
async def sample(context: Context) -> str:
    """Ask a model."""
    answered = await context.sample("Which capital?", max_tokens=10)
    return f"{answered.text} ({answered.model}, {answered.stop_reason})"


@tool
async def everything(context: Context) -> str:
    """Ask three things at once."""
    size, said, roots = await asyncio.gather(
        context.ask(Size, "Which size?"), context.sample("Say something", max_tokens=10), context.roots()
    )
    return f"{size.size} {said.text} {roots[0].uri}"


@tool
async def abilities(context: Context) -> dict[str, bool]:
    """Tell what the client can be asked."""
    return {
        "ask": context.can_ask,
        "ask_url": context.can_ask_url,
        "sample": context.can_sample,
        "roots": context.can_list_roots,
    }


@tool
async def settings_of(identifier: str, context: Context) -> str:
    """Tell what the client says of an extension."""
    return repr(context.client_extension(identifier))


@tool
async def talk(context: Context) -> str:
    """Log, and report progress."""
    context.log("debug", {"step": 1}, "talker")
    context.report_progress(1, 2, "half")
    context.log("error", "two")
    context.report_progress(2, 2)
    return "said"


@tool
async def trace(context: Context) -> str:
    """Tell the trace of the call."""
    return "none" if context.trace is None else context.trace.traceparent


@prompt
async def greeting(name: str, tone: Literal["warm", "cold"] = "warm") -> list[str | PromptMessage]:
    """Greet someone.

    Args:
        name: Whom.
        tone: How.
    """
    return [f"Greet {name}, {tone}.", PromptMessage("assistant", TextContent("Gladly."))]


@prompt
async def demanding(context: Context) -> str:
    """Ask for a size."""
    return (await context.ask(Size, "Which size?")).size


@resource("config://app", cache=CacheHint(1.5, "public"))
async def config() -> dict[str, int]:
    """Hold the configuration."""
    return {"port": 8000}


@resource("pages://{number}")
async def page(number: int) -> list[TextResource | BlobResource]:
    """Hold a page and its picture."""
    uri = f"pages://{number}"
    return [TextResource(uri, f"page {number}"), BlobResource(f"{uri}/picture", b"\x00\xff", "image/png")]


@resource("sizes://mine")
async def my_size(context: Context) -> str:
    """Ask for a size."""
    return (await context.ask(Size, "Which size?")).size


class Container(containers.DeclarativeContainer):
    """Every kind of feature."""

    prompt_registry = providers.Singleton(PromptRegistry)
    resource_registry = providers.Singleton(ResourceRegistry)
    probe = providers.Singleton(Probe)
    plain = (order, polite, sign_in, sample, everything, abilities, settings_of, talk, trace)
    tools = providers.List(probe, *map(providers.Object, plain))
    prompts = providers.List(providers.Object(greeting), providers.Object(demanding))
    resources = providers.List(providers.Object(config), providers.Object(page), providers.Object(my_size))
