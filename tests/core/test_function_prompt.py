"""@prompt: a function's parameters become the arguments of a prompt, and the function stays a function."""

import functools
import re
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from axolotl_core import ConfigurationError, Context, InvalidArguments, PromptMessage, PromptRegistry, prompt, tool
from axolotl_core.arguments import property_of
from axolotl_core.content import TextContent
from axolotl_core.prompts import check_prompt
from axolotl_core.protocol.identity import Icon
from tests.support.core.feature_calls import read, told


class Tone(Enum):
    WARM = "warm"
    COLD = "cold"


@prompt
def review(
    language: str,
    strict: bool = False,
    since: date = date(2024, 1, 1),
    depth: Literal["shallow", "deep"] = "deep",
    tone: Tone | None = None,
) -> str:
    """Review code.

    Args:
        language: What it is written in
        tone: How to say it
    """
    return f"{language} {strict} {since.year} {depth} {tone}"


@prompt(
    name="greet", title="Greeting", execution="loop", tags=frozenset({"kind"}), meta={"a": 1}, icons=(Icon("i.png"),)
)
def hello(context: Context, to: Annotated[str, Field(alias="for", description="Whom")]) -> str:
    return f"{to} {context.uri}"


async def test_texts_become_the_parameters() -> None:
    """Each parameter receives a value of its own type, or its default."""
    given = {"language": "py", "strict": "true", "since": "2020-05-05", "depth": "shallow", "tone": "cold"}
    assert await told(review, **given) == ["py True 2020 shallow Tone.COLD"]
    assert await told(review, language="py") == ["py False 2024 deep None"]


def test_texts_that_do_not_fit_are_refused() -> None:
    """All problems are reported at once."""
    with pytest.raises(InvalidArguments) as refused:
        read(review, strict="perhaps", tone="loud", more="x")
    for finding in ("language: required, but missing", "strict: ", "tone: ", "more: unknown argument"):
        assert finding in str(refused.value)


def test_the_signature_describes_the_prompt() -> None:
    """Name, description and those of the arguments are read from the function and its docstring."""
    check_prompt(review)
    schema = review.arguments_schema
    assert (review.name, review.description, schema["required"]) == ("review", "Review code.", ["language"])
    assert property_of(schema, "language")["description"] == "What it is written in"
    assert property_of(schema, "tone")["description"] == "How to say it"


def test_options_are_the_attributes() -> None:
    """Options of the decorator complement the function."""
    assert (hello.name, hello.title, hello.execution, hello.tags) == ("greet", "Greeting", "loop", frozenset({"kind"}))
    assert (hello.meta, hello.icons) == ({"a": 1}, (Icon("i.png"),))


async def test_a_field_names_and_describes_an_argument() -> None:
    """Callers see the alias and its description, and not the context."""
    assert hello.arguments_schema["properties"] == {"for": {"type": "string", "description": "Whom"}}
    assert await told(hello, **{"for": "Ada"}) == ["Ada test://asked"]


def test_enum_names_are_not_titles() -> None:
    """An argument has a title only if its author set one."""

    @prompt
    def paint(tone: Tone, other: Annotated[Tone, Field(title="Other tone")]) -> str:
        return f"{tone} {other}"

    assert "title" not in property_of(paint.arguments_schema, "tone")
    assert property_of(paint.arguments_schema, "other")["title"] == "Other tone"


def test_the_function_can_still_be_called() -> None:
    """Calling the prompt calls the function, with its own types."""
    assert review("py", strict=True).startswith("py True")


def test_a_plain_function_runs_in_a_thread() -> None:
    """A plain `def` may block, an `async def` waits on the loop."""

    @prompt
    async def waiting() -> str:
        return ""

    assert (review.execution, review.suspends) == ("thread", False)
    assert (waiting.execution, waiting.suspends) == ("loop", True)


async def test_each_item_of_a_generator_is_a_message() -> None:
    """Each yielded string is a message."""

    @prompt
    async def declared(times: int) -> AsyncIterator[str]:
        for number in range(times):
            yield str(number)

    @prompt
    async def undeclared(times: int):  # type: ignore[no-untyped-def]
        for number in range(times):
            yield str(number)

    @prompt
    async def messages() -> AsyncIterator[PromptMessage | str]:
        yield PromptMessage("assistant", TextContent("a"))
        yield "b"

    for generator in (declared, undeclared):
        assert await told(generator, times="2") == ["0", "1"]
        assert await told(generator, times="0") == []
    assert await told(messages) == ["a", "b"]


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(list[str], id="list"),
        pytest.param(dict[str, str], id="dict"),
        pytest.param(int | list[int], id="union"),
        pytest.param(Literal[1, 2], id="literal-of-numbers"),
        pytest.param(None, id="none"),
    ],
)
def test_an_argument_must_be_made_of_text(annotation: Any) -> None:
    """Types that cannot be parsed from a string are refused at registration."""

    def probe(value: Any) -> str:
        return str(value)

    probe.__annotations__["value"] = annotation
    with pytest.raises(ConfigurationError, match="Prompt 'probe': value cannot be parsed from a string"):
        PromptRegistry([prompt(probe)])


@review.completes("language")
def languages(value: str) -> list[str]:
    return [language for language in ("python", "perl") if language.startswith(value)]


@hello.completes("for")
async def names(value: str, known: Mapping[str, str]) -> list[str]:
    return [value, *known]


async def test_a_completer_suggests_values() -> None:
    """A completer gets the typed text, and the other arguments on request; it remains a function."""
    assert await review.complete("language", "py", {}) == ["python"]
    assert await hello.complete("for", "A", {"x": "1"}) == ["A", "x"]
    assert languages("pe") == ["perl"]


async def test_an_argument_without_a_completer_may_complete_itself() -> None:
    """Arguments without a completer are completed from their type."""
    assert await review.complete("tone", "w", {}) == ["warm"]
    assert await review.complete("strict", "", {}) == ["true", "false"]
    assert await review.complete("since", "", {}) == []


@pytest.mark.parametrize(
    ("completer", "named"),
    [
        pytest.param(languages, "languages", id="function"),
        pytest.param(functools.partial(languages), "functools.partial", id="partial"),
    ],
)
def test_a_completer_of_no_argument_is_refused(completer: Callable[..., list[str]], named: str) -> None:
    """The error lists the public names of the arguments."""
    with pytest.raises(ConfigurationError, match=f"{named}.* completes 'to', which is not an argument; arguments: for"):
        hello.completes("to")(completer)


class Callable_:
    def __call__(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("target", "text"),
    [
        pytest.param(tool(lambda: ""), "@prompt on '<lambda>', which is already a feature", id="tool"),
        pytest.param(Callable_, "@prompt decorates a function or method, not <class", id="class"),
        pytest.param(functools.partial(review), "not functools.partial", id="partial"),
        pytest.param(Callable_(), "@prompt decorates a function or method", id="object"),
        pytest.param(classmethod(lambda cls: ""), "a class method cannot be a prompt", id="class-method"),
    ],
)
def test_only_functions_can_be_decorated(target: Any, text: str) -> None:
    """The error says what the decorator applies to."""
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        prompt(target)


def test_an_unknown_option_is_refused() -> None:
    """Unknown options, and those of another decorator, are refused."""
    with pytest.raises(ConfigurationError, match=r"option coerce_arguments\n.* no option nam; did you mean name"):
        prompt(nam="x", coerce_arguments=True)  # type: ignore[call-overload]
