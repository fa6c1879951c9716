"""Type inference for prompts, checked by mypy; running the tests proves only that the file imports."""

from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any, Generic, TypeVar, assert_type

from pydantic import BaseModel

from axolotl_core import Completion, Context, IPrompt, PromptMessage, PromptRegistry, prompt, prompts_of
from axolotl_core.content import TextContent
from axolotl_core.prompts import FunctionPrompt, PromptOutput, PromptResult
from axolotl_core.registry import AnyPrompt
from axolotl_core.scanning import scan_prompts
from tests.support.core.callers import Caller

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


class Topic(BaseModel):
    topic: str


class Essay(IPrompt[Topic]):
    name = "essay"

    async def render(self, arguments: Topic, context: Context) -> str:
        assert_type(arguments.topic, str)
        return arguments.topic


class PlainEssay(IPrompt[Topic]):
    name = "plain-essay"

    def render(self, arguments: Topic, context: Context) -> list[PromptMessage]:
        return [PromptMessage("user", arguments.topic)]


class Dialogue(IPrompt[ArgumentsT], Generic[ArgumentsT]):
    name = "dialogue"

    async def render(self, arguments: ArgumentsT, context: Context) -> list[PromptMessage | str]:
        return [PromptMessage("assistant", TextContent(arguments.model_dump_json())), "Go on"]

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> Completion:
        return Completion([value], total=1)


class TopicDialogue(Dialogue[Topic]):
    name = "topic-dialogue"


class WrongArguments(IPrompt[Topic]):
    async def render(self, arguments: Essay, context: Context) -> str:  # type: ignore[override]
        return ""


class WrongOutput(IPrompt[Topic]):
    async def render(self, arguments: Topic, context: Context) -> int:  # type: ignore[override]
        return 1


@prompt
def review(language: str, strict: bool = False) -> str:
    return f"{language} {strict}"


@prompt(name="greeting", title="Greet")
async def greet(to: str) -> PromptMessage:
    return PromptMessage("user", TextContent(to))


@prompt
async def stream(times: int) -> AsyncIterator[str]:
    for number in range(times):
        yield str(number)


@review.completes("language")
def languages(value: str) -> list[str]:
    return [value]


@greet.completes("to")
async def people(value: str, known: Mapping[str, str]) -> Completion:
    return Completion([value, *known])


class Desk:
    @prompt
    def ask(self, question: str) -> str:
        return question

    @ask.completes("question")
    def questions(self, value: str) -> Sequence[str]:
        return [value]


async def test_decorated_functions_keep_their_types() -> None:
    """Calling the prompt has the type of the function."""
    assert_type(review("py", strict=True), str)
    pending = greet(to="Ada")
    assert assert_type(pending, Coroutine[Any, Any, PromptMessage]) is pending
    assert_type(await pending, PromptMessage)
    assert_type(stream(2), AsyncIterator[str])
    assert_type(Desk().ask("why"), str)


async def test_completers_keep_their_types() -> None:
    """A completer keeps its type, as a function and as a method."""
    assert_type(languages("p"), list[str])
    assert_type(await people("A", {}), Completion)
    assert_type(Desk().questions("w"), Sequence[str])
    assert languages("p") == ["p"]


async def test_render_is_typed_by_the_class() -> None:
    """`render` returns the type of the class, and `execute` always returns the same type."""
    assert_type(await Essay().render(Topic(topic="x"), Context()), str)
    assert_type(await TopicDialogue().render(Topic(topic="x"), Context()), list[PromptMessage | str])
    result = await TopicDialogue().execute(Topic(topic="x"), Context())
    assert_type(result, PromptResult)
    assert len(result.messages) == 2


def test_every_output_is_one() -> None:
    """All forms of output match the output type of prompts."""
    outputs: list[PromptOutput] = [
        "text",
        TextContent("block"),
        PromptMessage("user", TextContent("message")),
        ["text", TextContent("block"), PromptMessage("assistant", TextContent("message"))],
        PromptResult([PromptMessage("user", TextContent("message"))]),
    ]
    assert len(outputs) == 5


async def test_an_answer_is_of_the_model_that_was_asked_for() -> None:
    """`ask` returns the model, not a mapping."""
    caller = Caller(elicitation={"action": "accept", "content": {"topic": "cats"}})
    topic = await Context(caller=caller).ask(Topic, "What about?")
    assert_type(topic, Topic)
    assert topic.topic == "cats"


def test_registries_hold_any_prompt() -> None:
    """Registries accept prompts of all types, and lookups are checked for None."""
    registry = PromptRegistry([Essay(), PlainEssay(), TopicDialogue(), review, *prompts_of(Desk())])
    assert_type(registry.try_get("essay"), AnyPrompt | None)
    assert_type(registry.get_all(), tuple[IPrompt[Any], ...])
    assert_type(prompts_of(Desk()), tuple[FunctionPrompt[..., Any], ...])
    assert_type(scan_prompts("axolotl_core.names"), tuple[IPrompt[Any], ...])
    assert len(registry) == 5


def test_wrong_uses_are_seen_by_the_checker() -> None:
    """Each wrong use needs a `type: ignore`, which strict mypy verifies."""

    def probe(context: Context) -> None:
        review(5)  # type: ignore[arg-type]
        review("py", strikt=True)  # type: ignore[call-arg]
        prompt(mime_type="text/plain")  # type: ignore[call-overload]
        review.completes("language")(5)  # type: ignore[type-var]
        PromptMessage("system", TextContent(""))  # type: ignore[arg-type]
        context.ask(str, "What?")  # type: ignore[type-var, unused-coroutine]
        context.log("loud", "x")  # type: ignore[arg-type]
        context.sample("x")  # type: ignore[call-arg, unused-coroutine]

    assert callable(probe)
    assert (WrongArguments.input_model, WrongOutput.input_model) == (Topic, Topic)
