"""Tools that ask the caller while they run; in the stateless era, a call with answers runs them again."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from pydantic import BaseModel

from axolotl_core import Context, Declined, tool
from axolotl_core.registry import AnyTool
from tests.conformance.forms import Account, Choices, Colour, Confirmation, Defaults, Name

_CAPITAL = "What is the capital of France?"


@tool(name="test_sampling")
async def sampling(prompt: str, context: Context) -> str:
    """Let the caller's model answer."""
    sample = await context.sample(prompt, max_tokens=100)
    return f"LLM response: {sample.text}"


@tool(name="test_elicitation")
async def elicitation(message: str, context: Context) -> str:
    """Ask for a user name and an address."""
    return await _filled_in(context, Account, message)


@tool(name="test_elicitation_sep1034_defaults")
async def elicitation_with_defaults(context: Context) -> str:
    """Ask with a form that has defaults."""
    return await _filled_in(context, Defaults, "Please review and update the form fields with defaults")


@tool(name="test_elicitation_sep1330_enums")
async def elicitation_with_choices(context: Context) -> str:
    """Ask with a form of choices."""
    return await _filled_in(context, Choices, "Please select options from the enum fields")


@tool(name="test_streaming_elicitation")
async def streaming_elicitation(context: Context) -> str:
    """Report progress, log and ask, all on the stream of one call."""
    context.report_progress(1, 2, "About to ask")
    context.log("info", "About to ask")
    confirmed = await context.ask(Confirmation, "Go on?", key="confirm")
    context.report_progress(2, 2, "Answered")
    return f"Confirmed: {confirmed.ok}"


@tool(name="test_missing_capability")
async def missing_capability(context: Context) -> str:
    """Require a model, whether or not the caller has one."""
    return (await context.sample(_CAPITAL, max_tokens=100)).text


@tool(name="test_input_required_result_elicitation")
async def ask_name(context: Context) -> str:
    """Ask for a name."""
    answer = await context.ask(Name, "What is your name?", key="user_name")
    return f"Hello, {answer.name}!"


@tool(name="test_input_required_result_sampling")
async def ask_model(context: Context) -> str:
    """Ask the caller's model."""
    return (await context.sample(_CAPITAL, max_tokens=100, key="capital_question")).text


@tool(name="test_input_required_result_list_roots")
async def ask_roots(context: Context) -> str:
    """Ask for the caller's roots."""
    return ", ".join(root.uri for root in await context.roots(key="client_roots"))


@tool(name="test_input_required_result_request_state")
async def ask_with_state(context: Context) -> str:
    """Ask for a confirmation; the state is returned with the answer."""
    answer = await context.ask(Confirmation, "Please confirm", key="confirm")
    return f"state-ok, confirmed: {answer.ok}"


@tool(name="test_input_required_result_multiple_inputs")
async def ask_everything(context: Context) -> str:
    """Ask three different questions at once."""
    person, greeting, roots = await asyncio.gather(
        context.ask(Name, "What is your name?", key="user_name"),
        context.sample("Generate a greeting", max_tokens=50, key="greeting"),
        context.roots(key="client_roots"),
    )
    return f"{greeting.text} {person.name}, {len(roots)} roots"


@tool(name="test_input_required_result_multi_round")
async def ask_twice(context: Context) -> str:
    """Ask one question after the other."""
    person = await context.ask(Name, "Step 1: What is your name?", key="step1")
    favourite = await context.ask(Colour, "Step 2: What is your favorite color?", key="step2")
    return f"{person.name} likes {favourite.color}"


@tool(name="test_input_required_result_tampered_state")
async def ask_with_sealed_state(context: Context) -> str:
    """Ask for a confirmation; a changed state is rejected."""
    answer = await context.ask(Confirmation, "Please confirm", key="confirm")
    return f"Confirmed: {answer.ok}"


@tool(name="test_input_required_result_capabilities")
async def ask_what_is_possible(context: Context) -> str:
    """Ask only what this caller can answer."""
    questions: list[Awaitable[Any]] = []
    if context.can_ask:
        questions.append(context.ask(Name, "What is your name?", key="user_name"))
    if context.can_sample:
        questions.append(context.sample(_CAPITAL, max_tokens=100, key="capital_question"))
    if context.can_list_roots:
        questions.append(context.roots(key="client_roots"))
    return f"{len(await asyncio.gather(*questions))} answers"


async def _filled_in(context: Context, form: type[BaseModel], message: str) -> str:
    try:
        answer = await context.ask(form, message)
    except Declined as refusal:
        return f"Elicitation completed: action={refusal.action}"
    return f"Elicitation completed: action=accept, content={answer.model_dump_json(by_alias=True)}"


ASKING_TOOLS: Final[tuple[AnyTool, ...]] = (
    sampling,
    elicitation,
    elicitation_with_defaults,
    elicitation_with_choices,
    streaming_elicitation,
    missing_capability,
    ask_name,
    ask_model,
    ask_roots,
    ask_with_state,
    ask_everything,
    ask_twice,
    ask_with_sealed_state,
    ask_what_is_possible,
)
