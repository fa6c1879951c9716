import asyncio
from datetime import date
from enum import Enum
from typing import Annotated, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, Declined, ToolError, prompt, tool
from axolotl_core.questions.question import Titles
from axolotl_core.questions.sampling import ModelPreferences, SamplingMessage, ToolUseResult


# region form
class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Order(BaseModel):
    name: str = Field(min_length=1, max_length=40, title="Your name")
    day: date = Field(description="When it should arrive.")
    size: Size = Size.SMALL
    milk: Annotated[Literal["cow", "oat"], Titles("Cow's milk", "Oat milk")] = "cow"
    extras: list[Literal["sugar", "cinnamon"]] = Field([], max_length=2)
    note: str | None = None


# endregion form


@tool
async def order(context: Context) -> Order:
    """Take an order."""
    return await context.ask(Order, "What may I bring you?")


# region decline
class Feedback(BaseModel):
    stars: int = Field(ge=1, le=5)


@tool
async def rate(context: Context) -> str:
    """Ask for a rating and continue without one if the user declines."""
    if not context.can_ask:
        return "no rating: your client cannot ask you"
    try:
        feedback = await context.ask(Feedback, "How many stars?")
    except Declined as refusal:
        return f"no rating: {refusal.action}"
    return f"{feedback.stars} stars"


# endregion decline


# region url
@tool
async def connect_account(context: Context) -> str:
    """Connect an account. The user enters the password on the page, not in the client."""
    await context.ask_url("https://accounts.example.com/connect", "Sign in to connect your account")
    return "the page is open; call me again when you have signed in"


# endregion url


# region sample
@tool
async def name_cat(colour: str, context: Context) -> str:
    """Let the client's model name a cat."""
    sample = await context.sample(
        f"Suggest one name for a {colour} cat. Answer with the name only.",
        max_tokens=20,
        system_prompt="You name cats.",
        model_preferences=ModelPreferences(hints=["haiku"], speed_priority=0.9),
    )
    return f"{sample.text} (by {sample.model})"


# endregion sample


# region tools
@tool
async def population(city: str) -> str:
    """Return the population of a city."""
    return {"Graz": "300 000", "Linz": "210 000"}.get(city, "unknown")


@tool
async def compare(question: str, context: Context) -> str:
    """Let the client's model answer, with one of our tools at hand."""
    messages = [SamplingMessage("user", question)]
    for _ in range(5):
        sample = await context.sample(messages, max_tokens=200, tools=[population])
        if not sample.tool_uses:
            return sample.text
        outcomes = [ToolUseResult(use.id, await population(str(use.input.get("city")))) for use in sample.tool_uses]
        messages += [sample.message, SamplingMessage("user", outcomes)]
    raise ToolError("The model did not finish within 5 turns.")


# endregion tools


# region roots
@tool
async def list_projects(context: Context) -> list[str]:
    """List the directories the user works in."""
    return [root.name or root.uri for root in await context.roots()]


# endregion roots


# region gather
class Guest(BaseModel):
    name: str


@tool
async def welcome(context: Context) -> str:
    """Ask three questions at once."""
    guest, greeting, roots = await asyncio.gather(
        context.ask(Guest, "Who are you?", key="guest"),
        context.sample("Write a greeting of two words.", max_tokens=10, key="greeting"),
        context.roots(key="places"),
    )
    return f"{greeting.text}, {guest.name}! You have {len(roots)} projects."


# endregion gather


# region prompt
@prompt
async def write_letter(context: Context) -> str:
    """Write a letter, signed by a guest."""
    guest = await context.ask(Guest, "Who signs the letter?")
    return f"Write a letter, signed by {guest.name}."


# endregion prompt


class Container(containers.DeclarativeContainer):
    tools = providers.List(
        providers.Object([order, rate, connect_account, name_cat, population, compare, list_projects, welcome])
    )
    prompts = providers.List(providers.Object(write_letter))
