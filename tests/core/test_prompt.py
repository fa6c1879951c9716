"""IPrompt: typed arguments, and checks before registration."""

import re
from datetime import date
from enum import Enum
from typing import Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field

from axolotl_core import ConfigurationError, Context, InvalidArguments, IPrompt, NoArguments
from axolotl_core.arguments import property_of
from axolotl_core.prompts import PromptOutput, check_prompt
from tests.support.core.feature_calls import read, told

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)
ItemT = TypeVar("ItemT")


class Tone(Enum):
    """How it sounds."""

    WARM = "warm"
    COLD = "cold"


class Letter(BaseModel):
    """Every kind of argument that text can hold."""

    to: str = Field(description="Who gets it", title="Recipient")
    copies: int = Field(1, ge=1)
    weight: float = 0.5
    urgent: bool = False
    day: date | None = None
    form: Literal["short", "long"] = "short"
    tone: Tone = Tone.WARM
    other: Tone | None = Field(None, description="A second tone")
    sender: str = Field("me", alias="from", description="Who sends it")


class Write(IPrompt[Letter]):
    name = "write"
    description = "Writes a letter"

    async def render(self, arguments: Letter, context: Context) -> PromptOutput:
        return repr(arguments)


async def test_arguments_are_converted_from_text() -> None:
    """Each field receives a value of its own type."""
    letter = read(
        Write(),
        to="Ada",
        copies="3",
        weight="1.5",
        urgent="true",
        day="2024-02-29",
        form="long",
        tone="cold",
        other="warm",
        **{"from": "Bob"},
    )
    assert letter == Letter(
        to="Ada",
        copies=3,
        weight=1.5,
        urgent=True,
        day=date(2024, 2, 29),
        form="long",
        tone=Tone.COLD,
        other=Tone.WARM,
        **{"from": "Bob"},
    )
    assert [type(value) for value in (letter.copies, letter.weight, letter.urgent)] == [int, float, bool]


async def test_omitted_arguments_have_defaults() -> None:
    """Only arguments without a default are required."""
    assert read(Write(), to="Ada") == Letter(to="Ada")
    with pytest.raises(InvalidArguments, match="to: required, but missing"):
        read(Write())


@pytest.mark.parametrize(
    ("texts", "finding"),
    [
        pytest.param({"copies": "many"}, "copies: Input should be a valid integer", id="number"),
        pytest.param({"copies": "0"}, "copies: Input should be greater than or equal to 1", id="constraint"),
        pytest.param({"urgent": "perhaps"}, "urgent: Input should be a valid boolean", id="boolean"),
        pytest.param({"day": "yesterday"}, "day: Input should be a valid date", id="date"),
        pytest.param({"form": "medium"}, "form: Input should be 'short' or 'long'", id="literal"),
        pytest.param({"tone": "WARM"}, "tone: Input should be 'warm' or 'cold'", id="name-of-a-member"),
        pytest.param({"day": ""}, "day: Input should be a valid date", id="empty"),
        pytest.param({"sender": "Bob"}, "sender: unknown argument", id="name-behind-an-alias"),
        pytest.param({"colour": "red"}, "colour: unknown argument", id="unknown"),
    ],
)
def test_texts_that_do_not_fit_are_refused(texts: dict[str, str], finding: str) -> None:
    """The error contains the argument and the problem."""
    with pytest.raises(InvalidArguments, match=re.escape(finding)):
        read(Write(), to="Ada", **texts)


def test_a_model_may_let_unknown_arguments_pass() -> None:
    """The setting of a model for unknown fields applies, as for tools."""

    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    class Careless(BaseModel):
        model_config = ConfigDict(extra="ignore")

    class OpenPrompt(IPrompt[Open]):
        async def render(self, arguments: Open, context: Context) -> str:
            return ""

    class CarelessPrompt(IPrompt[Careless]):
        async def render(self, arguments: Careless, context: Context) -> str:
            return ""

    assert read(OpenPrompt(), more="x").model_extra == {"more": "x"}
    assert read(CarelessPrompt(), more="x") == Careless()


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        pytest.param("to", {"description": "Who gets it", "title": "Recipient", "type": "string"}, id="said"),
        pytest.param("from", {"default": "me", "description": "Who sends it", "type": "string"}, id="alias"),
        pytest.param(
            "tone",
            {"default": "warm", "description": "How it sounds.", "enum": ["warm", "cold"], "type": "string"},
            id="enum",
        ),
    ],
)
def test_fields_describe_the_arguments(argument: str, shown: dict[str, Any]) -> None:
    """Descriptions and titles come from the field; an Enum contributes its docstring."""
    assert property_of(Write().arguments_schema, argument) == shown


def test_only_fields_without_a_default_are_required() -> None:
    """Required arguments are published."""
    assert Write().arguments_schema["required"] == ["to"]
    assert "required" not in Nameless().arguments_schema


@pytest.mark.parametrize(
    ("argument", "value", "suggested"),
    [
        pytest.param("form", "", ["short", "long"], id="literal"),
        pytest.param("tone", "c", ["cold"], id="enum"),
        pytest.param("other", "", ["warm", "cold"], id="optional-enum"),
        pytest.param("urgent", "T", ["true"], id="bool"),
        pytest.param("to", "", [], id="text"),
        pytest.param("unknown", "", [], id="unknown"),
    ],
)
async def test_choices_complete_themselves(argument: str, value: str, suggested: list[str]) -> None:
    """Types with a fixed set of values need no completer."""
    assert await Write().complete(argument, value, {}) == suggested


class Echo(IPrompt[ArgumentsT], Generic[ArgumentsT]):
    """A class in between that leaves the arguments open."""

    async def render(self, arguments: ArgumentsT, context: Context) -> PromptOutput:
        return arguments.model_dump_json()


class Name(BaseModel):
    name: str


class Box(BaseModel, Generic[ItemT]):
    item: ItemT


class NameEcho(Echo[Name]):
    name = "name-echo"


class LouderEcho(NameEcho):
    name = "louder"


class BoxEcho(Echo[Box[ItemT]], Generic[ItemT]):
    """Another one in between."""


class NumberBox(BoxEcho[int]):
    name = "number-box"


@pytest.mark.parametrize(
    ("prompt", "texts", "output"),
    [
        pytest.param(NameEcho(), {"name": "Ada"}, '{"name":"Ada"}', id="filled"),
        pytest.param(LouderEcho(), {"name": "Ada"}, '{"name":"Ada"}', id="inherited"),
        pytest.param(NumberBox(), {"item": "5"}, '{"item":5}', id="nested"),
    ],
)
async def test_generic_classes_in_between_pass_the_arguments_on(
    prompt: IPrompt[Any], texts: dict[str, str], output: str
) -> None:
    """The type argument of a subclass determines the arguments."""
    check_prompt(prompt)
    assert await told(prompt, **texts) == [output]


def test_a_prompt_without_type_arguments_is_refused_when_it_is_defined() -> None:
    """The error says what to write."""
    with pytest.raises(TypeError, match=re.escape("class Bare(IPrompt[Arguments])")):

        class Bare(IPrompt):  # type: ignore[type-arg]
            async def render(self, arguments: Any, context: Context) -> str:
                return ""


class Nameless(IPrompt[NoArguments]):
    async def render(self, arguments: NoArguments, context: Context) -> str:
        return ""


class Unfilled(Echo):  # type: ignore[type-arg]
    name = "unfilled"


class OfNumbers(IPrompt[int]):
    name = "of-numbers"

    async def render(self, arguments: int, context: Context) -> str:
        return ""


class Listed(BaseModel):
    names: list[str]


class OfLists(IPrompt[Listed]):
    name = "of-lists"

    async def render(self, arguments: Listed, context: Context) -> str:
        return ""


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        pytest.param(Nameless(), 'has no name: write name = "nameless" in the class', id="no-name"),
        pytest.param(Unfilled(), "class Unfilled(IPrompt[Arguments])", id="open"),
        pytest.param(OfNumbers(), "OfNumbers has no arguments model", id="no-model"),
        pytest.param(OfLists(), "Prompt 'of-lists': names cannot be parsed from a string", id="list"),
        pytest.param(Write, "register an instance, not the class", id="class"),
        pytest.param("write", "'write' is not a prompt: subclass IPrompt or use @prompt", id="text"),
    ],
)
def test_a_prompt_is_checked_before_it_is_registered(prompt: Any, text: str) -> None:
    """Errors say what is missing, and what to write."""
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        check_prompt(prompt)
