"""Tools that ask the user, the client's model, or for its roots."""

import asyncio
from datetime import date
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from axolotl_core import Context, Declined, tool
from axolotl_core.questions.question import Titles
from axolotl_core.questions.sampling import SamplingMessage, SamplingTool, ToolUseResult
from axolotl_core.registry import AnyTool

PAYMENT_URL: Final = "https://pay.example.com/invoice/7"


class Booking(BaseModel):
    """A form with every simple kind of field."""

    name: str = Field(min_length=1, description="Who comes.")
    nights: int = Field(ge=1, le=30)
    room: Literal["single", "double"] = "single"
    breakfast: bool = False


class Survey(BaseModel):
    """A form with every other kind of field."""

    day: date
    rating: float = Field(ge=0, le=5)
    size: Annotated[Literal["s", "m"], Titles("Small", "Medium")]
    colours: list[Literal["red", "green", "blue"]] = Field(max_length=2)
    toppings: Annotated[list[Literal["nuts", "figs"]], Titles("Hazelnuts", "Dried figs")] = []
    remark: str | None = None


class Word(BaseModel):
    """A form with one field."""

    word: str


class City(BaseModel):
    """The arguments of the tool that a model may use."""

    city: str


@tool
async def book(context: Context) -> str:
    """Ask for a booking."""
    try:
        booking = await context.ask(Booking, "Your booking?")
    except Declined as refusal:
        return f"no booking: {refusal.action}"
    return f"{booking.name}, {booking.nights} nights, {booking.room}, breakfast: {booking.breakfast}"


@tool
async def survey(context: Context) -> Survey:
    """Ask for dates, numbers and choices, and return the answer."""
    return await context.ask(Survey, "What do you think?")


@tool
async def insist(context: Context) -> str:
    """Ask, and fail without an answer."""
    return (await context.ask(Word, "A word?")).word


@tool
async def pay(context: Context) -> str:
    """Ask the user to open a page."""
    try:
        await context.ask_url(PAYMENT_URL, "Pay here")
    except Declined as refusal:
        return f"not paid: {refusal.action}"
    return "on the way"


@tool
async def summarise(text: str, context: Context) -> str:
    """Use the client's model."""
    sample = await context.sample(text, max_tokens=50, system_prompt="Be brief", temperature=0.5)
    return f"{sample.model} wrote: {sample.text} ({sample.stop_reason})"


@tool
async def research(context: Context) -> str:
    """Let the client's model use a tool."""
    forecast = SamplingTool.of("forecast", City, "Tell the weather.")
    conversation = [SamplingMessage("user", "How is the weather in Oslo?")]
    sample = await context.sample(conversation, max_tokens=50, tools=[forecast], tool_choice="auto")
    outcomes = [ToolUseResult(use.id, f"snow in {use.input['city']}") for use in sample.tool_uses]
    conversation += [sample.message, SamplingMessage("user", outcomes)]
    return (await context.sample(conversation, max_tokens=50, tools=[forecast])).text


@tool
async def workplaces(context: Context) -> list[str]:
    """Ask for the roots."""
    return [f"{root.name}: {root.uri}" for root in await context.roots()]


@tool
async def everything(context: Context) -> str:
    """Ask three questions at once."""
    answer, sample, roots = await asyncio.gather(
        context.ask(Word, "A word?"), context.sample("A text?", max_tokens=10), context.roots()
    )
    return f"{answer.word}, {sample.text}, {len(roots)} roots"


@tool
async def step_by_step(context: Context) -> str:
    """Ask a question, and then another that depends on the first answer."""
    first = await context.ask(Word, "The first word?")
    second = await context.ask(Word, f"What comes after {first.word}?")
    return f"{first.word} {second.word}"


@tool(timeout_seconds=0.3)
async def hurry(context: Context) -> str:
    """Ask with a short timeout."""
    return (await context.ask(Word, "Take your time")).word


@tool
async def abilities(context: Context) -> list[bool]:
    """Return which questions the client supports."""
    return [context.can_ask, context.can_ask_url, context.can_sample, context.can_list_roots]


ASKING_TOOLS: Final[tuple[AnyTool, ...]] = (
    book,
    survey,
    insist,
    pay,
    summarise,
    research,
    workplaces,
    everything,
    step_by_step,
    hurry,
    abilities,
)
