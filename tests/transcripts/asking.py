"""Tools, a prompt and resources that ask their caller."""

import asyncio
from typing import Annotated, Any, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, Declined, prompt, resource, tool
from axolotl_core.questions.question import Titles
from axolotl_core.questions.sampling import ModelPreferences, SamplingTool
from axolotl_core.tools.schema_tool import SchemaTool


class Name(BaseModel):
    name: str


class Colour(BaseModel):
    colour: Literal["red", "blue"]


class Profile(BaseModel):
    """A form with every kind of field."""

    name: str = Field("Ann", title="Name", description="your name", min_length=2)
    age: int = Field(30, ge=0)
    member: bool = True
    size: Annotated[Literal["s", "l"], Titles("Small", "Large")] = "s"


class Tags(BaseModel):
    tags: list[Literal["x", "y"]]


@tool
async def greet(context: Context) -> str:
    """Ask for a name."""
    return f"Hello, {(await context.ask(Name, 'Who are you?')).name}!"


@tool
async def describe(context: Context) -> str:
    """Ask for all kinds of things."""
    profile = await context.ask(Profile, "Tell me about you", key="profile")
    return f"{profile.name} {profile.age} {profile.member} {profile.size}"


@tool
async def tag(context: Context) -> str:
    """Ask for several choices."""
    return ",".join((await context.ask(Tags, "Which?")).tags)


@tool
async def consent(context: Context) -> str:
    """Take no for an answer."""
    try:
        await context.ask(Name, "May I?")
    except Declined as declined:
        return f"{declined.action}: {declined}"
    return "thanks"


@tool
async def sign_in(context: Context) -> str:
    """Have a page opened."""
    await context.ask_url("https://example.com/sign-in?state=1", "Please sign in")
    return "signed in"


@tool
async def write(context: Context) -> str:
    """Have the client's model write something."""
    sample = await context.sample("Write a poem", max_tokens=20)
    return f"{sample.model} {sample.role} {sample.stop_reason}: {sample.text}"


@tool
async def write_much(context: Context) -> str:
    """Say all that may be said about a sample."""
    sample = await context.sample(
        "Write a poem",
        max_tokens=20,
        system_prompt="Be brief",
        temperature=0.5,
        stop_sequences=["END"],
        model_preferences=ModelPreferences(hints=["claude"], cost_priority=0.1),
        metadata={"example.com/n": 1},
    )
    return sample.text


@tool
async def write_with_tools(context: Context) -> str:
    """Give the client's model a tool."""
    tools = [SamplingTool("look", {"type": "object"}, "Look around")]
    sample = await context.sample("Look", max_tokens=20, tools=tools, tool_choice="required")
    return ",".join(f"{use.name} {use.input}" for use in sample.tool_uses)


@tool
async def where(context: Context) -> str:
    """Ask for the roots."""
    return ", ".join(f"{root.name or '?'}={root.uri}" for root in await context.roots())


@tool
async def all_at_once(context: Context) -> str:
    """Ask three things together."""
    name, sample, roots = await asyncio.gather(
        context.ask(Name, "Who?"), context.sample("Greet", max_tokens=5), context.roots()
    )
    return f"{name.name} {sample.text} {len(roots)}"


@tool
async def what_is_possible(context: Context) -> str:
    """Tell what can be asked."""
    able = {
        "ask": context.can_ask,
        "url": context.can_ask_url,
        "sample": context.can_sample,
        "roots": context.can_list_roots,
    }
    return " ".join(name for name, can in able.items() if can) or "nothing"


@tool
async def two_steps(first: str, context: Context) -> str:
    """Ask one thing after the other."""
    name = (await context.ask(Name, f"{first}: who?")).name
    colour = (await context.ask(Colour, f"Which colour, {name}?")).colour
    return f"{name} likes {colour}"


@tool
async def three_steps(context: Context) -> str:
    """Ask the same thing thrice, and count."""
    names = [(await context.ask(Name, f"Name {number}?")).name for number in range(3)]
    return ",".join(names)


@tool
async def cautious(context: Context) -> str:
    """Handle every error, and clean up."""
    try:
        return (await context.ask(Name, "Who?", key="who")).name
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        context.log("info", "cleaned up")


@tool
async def busy(context: Context) -> str:
    """Say how far it is, then ask."""
    context.report_progress(1, 2, "asking")
    name = (await context.ask(Name, "Who?")).name
    context.report_progress(2, 2, "asked")
    return name


@tool(execution="thread")
async def ask_in_thread(context: Context) -> str:
    """Ask from a loop in a worker thread."""
    return f"Hello, {(await context.ask(Name, 'Who is there?')).name}!"


def _calm(arguments: dict[str, Any]) -> str:
    return "calm"


@prompt
async def about(topic: str, context: Context) -> str:
    """Ask before the prompt is written."""
    return f"{topic}, says {(await context.ask(Name, 'By whom?')).name}"


@resource("secrets://one")
async def secret(context: Context) -> str:
    """Ask before something is read."""
    return f"for {(await context.ask(Name, 'For whom?')).name}"


@resource("secrets://of/{owner}")
async def secret_of(owner: str, context: Context) -> str:
    """Ask before something of many is read."""
    return f"of {owner} for {(await context.ask(Name, f'Who reads {owner}?')).name}"


TOOLS = (
    greet,
    describe,
    tag,
    consent,
    sign_in,
    write,
    write_much,
    write_with_tools,
    where,
    all_at_once,
    what_is_possible,
    two_steps,
    three_steps,
    cautious,
    busy,
    ask_in_thread,
)


class Container(containers.DeclarativeContainer):
    """Everything that asks, and a tool that does not."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    tools = providers.List(
        *map(providers.Object, TOOLS),
        providers.Singleton(SchemaTool, "calm", {}, _calm),
    )
    prompts = providers.List(providers.Object(about))
    resources = providers.List(providers.Object(secret), providers.Object(secret_of))


class Impatient(containers.DeclarativeContainer):
    """Questions with a very short timeout."""

    settings = providers.Object(
        {"server": {"name": "transcripts", "version": "1"}, "limits": {"ask_timeout_seconds": 0.05}}
    )
    tools = providers.List(providers.Object(greet), providers.Object(consent))
