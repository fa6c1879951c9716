"""Arguments: strict types, unknown fields, and helpful errors."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from axolotl_core import Context, InvalidArguments, ITool, NoArguments
from axolotl_core.errors import InvalidRequest
from axolotl_core.registry import AnyTool
from tests.support.core.sample_tools import Add, fits, read, read_bytes


class Note(BaseModel):
    text: str


class WithNote(ITool[Note, str]):
    name = "note"
    description = "Keep a note."

    async def execute(self, arguments: Note, context: Context) -> str:
        return arguments.text


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Everything(BaseModel):
    flag: bool = False
    number: int = 0
    ratio: float = 0.0
    text: str = ""
    day: date = date.min
    moment: datetime = datetime.min
    delay: timedelta = timedelta()
    identity: UUID = UUID(int=0)
    amount: Decimal = Decimal(0)
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    choice: Literal["a", "b"] = "a"
    pair: tuple[int, str] = (0, "")
    several: set[int] = set()
    path: PurePosixPath = PurePosixPath()
    maybe: int | None = None


def tool_of(model: type[BaseModel]) -> AnyTool:
    """Make a tool that takes this model."""

    class Made(ITool[model, None]):  # type: ignore[valid-type]
        name = "made"

        async def execute(self, arguments: Any, context: Context) -> None: ...

    return Made()


def refusal_of(tool: AnyTool, *, coerce: bool = False, **arguments: Any) -> str:
    """Return the error for invalid arguments."""
    with pytest.raises(InvalidArguments) as refused:
        read(tool, coerce=coerce, **arguments)
    return refused.value.message


@pytest.mark.parametrize(
    ("field", "sent", "expected"),
    [
        pytest.param("day", "2024-02-29", date(2024, 2, 29), id="date"),
        pytest.param("moment", "2024-02-29T10:00:00Z", datetime(2024, 2, 29, 10, tzinfo=UTC), id="datetime"),
        pytest.param("delay", "PT90S", timedelta(seconds=90), id="duration"),
        pytest.param("identity", "12345678-1234-5678-1234-567812345678", UUID("12345678" + "12345678" * 3), id="uuid"),
        pytest.param("amount", "1.10", Decimal("1.10"), id="decimal"),
        pytest.param("colour", "red", Colour.RED, id="enum"),
        pytest.param("level", 1, Level.LOW, id="int-enum"),
        pytest.param("choice", "b", "b", id="literal"),
        pytest.param("pair", [1, "x"], (1, "x"), id="tuple"),
        pytest.param("several", [1, 2], {1, 2}, id="set"),
        pytest.param("path", "a/b", PurePosixPath("a/b"), id="path"),
        pytest.param("ratio", 2, 2.0, id="whole-number-as-float"),
        pytest.param("maybe", None, None, id="null"),
    ],
)
def test_strict_mode_parses_types_that_json_lacks(field: str, sent: Any, expected: Any) -> None:
    """Dates, enums, UUIDs and similar types are parsed from strings."""
    assert getattr(read(tool_of(Everything), **{field: sent}), field) == expected


@pytest.mark.parametrize(
    ("field", "sent", "expected"),
    [
        pytest.param("number", "5", 5, id="text-for-integer"),
        pytest.param("number", 5.0, 5, id="float-for-integer"),
        pytest.param("ratio", "0.5", 0.5, id="text-for-number"),
        pytest.param("flag", "true", True, id="text-for-boolean"),
        pytest.param("flag", 1, True, id="integer-for-boolean"),
        pytest.param("maybe", "7", 7, id="text-for-optional-integer"),
    ],
)
def test_values_of_a_neighbouring_type_are_coerced_only_on_demand(field: str, sent: Any, expected: Any) -> None:
    """`"5"` is not 5, unless the tool or the operator allows it."""
    tool = tool_of(Everything)
    assert refusal_of(tool, **{field: sent}).startswith(f"Invalid arguments: {field}: ")
    assert getattr(read(tool, coerce=True, **{field: sent}), field) == expected


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param({"a": 1}, "b: required, but missing", id="missing"),
        pytest.param({}, "a: required, but missing; b: required, but missing", id="all-findings-at-once"),
        pytest.param({"a": "x", "b": 1}, "a: Input should be a valid integer, got string", id="text"),
        pytest.param({"a": None, "b": 1}, "a: Input should be a valid integer, got null", id="null"),
        pytest.param({"a": True, "b": 1}, "a: Input should be a valid integer, got boolean", id="boolean"),
        pytest.param({"a": 1.5, "b": 1}, "a: Input should be a valid integer, got number", id="fraction"),
        pytest.param({"a": [1], "b": 1}, "a: Input should be a valid integer, got array", id="array"),
        pytest.param({"a": {}, "b": 1}, "a: Input should be a valid integer, got object", id="object"),
        pytest.param({"a": 1, "b": 2, "c": 3}, "c: unknown argument; it takes a, b", id="unknown"),
    ],
)
def test_errors_contain_field_expectation_and_type(arguments: dict[str, Any], text: str) -> None:
    """A caller learns which argument is wrong and how."""
    assert refusal_of(Add(), **arguments) == f"Invalid arguments: {text}"


class Inner(BaseModel):
    numbers: list[int] = []


class Outer(BaseModel):
    inner: Inner = Inner()
    by_name: dict[str, Inner] = {}


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        pytest.param({"inner": {"numbers": [1, "2"]}}, "inner.numbers[1]: ", id="list"),
        pytest.param({"by_name": {"x": {"numbers": 1}}}, "by_name.x.numbers: ", id="dict"),
        pytest.param({"inner": {"more": 1}}, "inner.more: unknown argument", id="unknown"),
        pytest.param({"by_name": {"k" * 1000: 1}}, f"by_name.{'k' * 64}: ", id="key-of-the-caller-is-cut"),
    ],
)
def test_a_refusal_names_nested_places(arguments: dict[str, Any], place: str) -> None:
    """A path leads to the field, through objects and lists."""
    assert refusal_of(tool_of(Outer), **arguments).startswith(f"Invalid arguments: {place}")


def test_a_refusal_does_not_repeat_the_values_of_the_caller() -> None:
    """Values, secrets among them, are not echoed."""
    assert "hunter2" not in refusal_of(Add(), a="hunter2", b=["hunter2"])


def test_a_refusal_shows_twenty_problems_and_counts_the_rest() -> None:
    """The length of an error is limited."""
    text = refusal_of(tool_of(Inner), numbers=["x"] * 25)
    assert text.count("numbers[") == 20
    assert text.endswith("; and 5 more")


def test_a_tool_without_arguments_refuses_arguments() -> None:
    """A tool without arguments refuses arguments."""
    assert refusal_of(tool_of(NoArguments), x=1).endswith("x: unknown argument; it takes no arguments")


class Plain(BaseModel):
    sender: str = Field(alias="from")
    subject: str = Field(validation_alias=AliasChoices("subject", "title"), default="")  # type: ignore[pydantic-alias]


class Camel(Plain):
    model_config = ConfigDict(alias_generator=to_camel)

    reply_to: str = ""  # type: ignore[pydantic-alias]


def test_aliases_are_the_names_that_callers_use() -> None:
    """Callers use and see the alias, not the name of the field."""
    tool = tool_of(Camel)
    sent: dict[str, Any] = {"from": "x", "title": "y", "replyTo": "z"}
    assert read(tool, **sent).model_dump() == {"sender": "x", "subject": "y", "reply_to": "z"}
    assert refusal_of(tool) == "Invalid arguments: from: required, but missing"
    assert "sender: unknown argument; it takes from, subject, replyTo" in refusal_of(tool, **sent, sender="x")


def test_the_text_of_a_models_own_check_reaches_the_caller() -> None:
    """The text of a custom validator is part of the error."""

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("give an even number")
            return number

    assert "number: Value error, give an even number" in refusal_of(tool_of(Even), number=3)


@pytest.mark.parametrize("length", [1, 100_000])
@pytest.mark.parametrize("letter", ["x", ":"])
def test_duplicate_members_are_refused(letter: str, length: int) -> None:
    """A member that occurs twice is refused, whatever the texts beside it contain."""
    text = f'"text":"{letter * length}"'
    assert read_bytes(WithNote(), f"{{{text}}}".encode()).text == letter * length
    for repeated in (f'{text},"text":""', f'"text":"",{text}'):
        with pytest.raises(InvalidRequest, match='the member "text" occurs more than once'):
            read_bytes(WithNote(), f"{{{repeated}}}".encode())


def test_json_that_the_envelope_let_pass_is_refused_not_raised() -> None:
    """Invalid JSON is refused as invalid arguments."""
    with pytest.raises(InvalidArguments, match="Invalid arguments: arguments: "):
        read_bytes(Add(), b'{"a":')


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Careless(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Careful(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HoldsOpen(BaseModel):
    held: Open


class HoldsCareless(BaseModel):
    held: Careless


class HoldsCareful(BaseModel):
    held: Careful


class CarefulHoldsOpen(BaseModel):
    model_config = ConfigDict(extra="forbid")

    held: Open


class Heir(Careless):
    """Inherits the configuration of its parent."""


@dataclass
class Record:
    x: int = 0


class Entry(TypedDict):
    x: int


class HoldsRecord(BaseModel):
    held: Record


class HoldsEntry(BaseModel):
    held: Entry


HELD: dict[str, Any] = {"held": {}}
HELD_MORE: dict[str, Any] = {"held": {"more": 1}}


@pytest.mark.parametrize(
    ("model", "arguments", "accepted"),
    [
        pytest.param(NoArguments, {"more": 1}, False, id="silent-refuses"),
        pytest.param(Open, {"more": 1}, True, id="allow"),
        pytest.param(Careless, {"more": 1}, True, id="ignore"),
        pytest.param(Heir, {"more": 1}, True, id="ignore-inherited"),
        pytest.param(Careful, {"more": 1}, False, id="forbid"),
        pytest.param(HoldsOpen, HELD_MORE, True, id="nested-allow"),
        pytest.param(HoldsCareless, HELD_MORE, True, id="nested-ignore"),
        pytest.param(HoldsCareful, HELD_MORE, False, id="nested-forbid"),
        pytest.param(HoldsCareful, {**HELD, "more": 1}, False, id="silent-around-forbid"),
        pytest.param(CarefulHoldsOpen, {**HELD, "more": 1}, False, id="forbid-around-allow"),
        pytest.param(CarefulHoldsOpen, HELD_MORE, True, id="allow-inside-forbid"),
        pytest.param(HoldsRecord, HELD_MORE, False, id="nested-dataclass"),
        pytest.param(HoldsEntry, {"held": {"x": 1, "more": 1}}, False, id="nested-typed-dict"),
    ],
)
def test_schema_and_parser_agree_about_unknown_fields(
    model: type[BaseModel], arguments: dict[str, Any], accepted: bool
) -> None:
    """Unknown fields are refused unless a model allows them, and the schema agrees with the parser."""
    tool = tool_of(model)
    assert fits(tool.input_schema, **arguments) is accepted
    if accepted:
        read(tool, **arguments)
    else:
        assert "more: unknown argument" in refusal_of(tool, **arguments)


def test_allowed_fields_are_kept_and_ignored_ones_are_dropped() -> None:
    """The setting of a model for unknown fields applies."""
    assert read(tool_of(Open), more=1).model_extra == {"more": 1}
    assert read(tool_of(Careless), more=1).model_extra is None
