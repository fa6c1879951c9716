"""Redaction of arguments in audit records."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Json,
    JsonValue,
    PlainValidator,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    WithJsonSchema,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.experimental.pipeline import validate_as
from typing_extensions import TypedDict

from axolotl_core import Context, ITool, prompt, tool, tools_of
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec, Limits
from axolotl_core.policies.audit import Sensitive
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server.audit.records import Redact
from axolotl_server.audit.redaction import redactor
from tests.support.audited_calls import MemorySink, Pipeline, audit_into, record
from tests.support.core.json_values import JSON
from tests.support.tools import Echo

SECRET = "hunter2"
LOGIN = {"user": "u", "password": SECRET}
MASKED = {"user": "u", "password": "***"}
T = TypeVar("T")
Token = Annotated[str, Sensitive]
UserId = NewType("UserId", str)


class Colour(Enum):
    RED = "red"


class Login(BaseModel):
    user: str
    password: Annotated[str, Sensitive]


class Pair(NamedTuple):
    name: str
    token: Token


class Options(TypedDict):
    size: int
    token: NotRequired[Token]


@dataclasses.dataclass
class Plain:
    name: str
    token: Token


@pydantic_dataclass
class Checked:
    name: str
    token: Token = Field(alias="t")


class Box(BaseModel, Generic[T]):
    content: T


class Tokens(RootModel[list[Token]]):
    pass


class Node(BaseModel):
    name: str
    token: Token = ""
    children: "list[Node]" = []


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first: Annotated[str, Sensitive] = Field(alias="one")
    second: str = Field(validation_alias=AliasChoices("two", "deux"))
    third: str = Field(validation_alias=AliasPath("deep", "down"))


class Welcoming(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: str


class Drawn(Login):
    """A model whose custom schema does not mark its secret."""

    @classmethod
    def __get_pydantic_json_schema__(cls, source: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "object", "properties": {"user": {"type": "string"}, "password": {"type": "string"}}}


class Embellished(Login):
    model_config = ConfigDict(json_schema_extra={"properties": {"password": {"type": "string"}}})


class Piped(BaseModel):
    login: Annotated[Login, validate_as(str).transform(json.loads).validate_as(Login)]


class Within(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    user: dict[str, str]
    password: Token = Field(default="", validation_alias=AliasPath("user", "password"))


class Grove(BaseModel):
    """A recursive union, which must not take exponential time."""

    name: str
    children: "list[Grove] | tuple[Grove, ...]" = []


def deep(levels: int) -> Any:
    children: list[Any] = []
    for _ in range(levels):
        children = [{"name": "a", "children": children}]
    return children


class Parsed(BaseModel):
    user: str
    password: Token

    @model_validator(mode="before")
    @classmethod
    def split(cls, value: Any) -> Any:
        return dict(zip(("user", "password"), value.split(":"), strict=True)) if isinstance(value, str) else value


LIMITS = Limits(timeout_seconds=1, max_concurrency=None, execution="loop", coerce_arguments=False)


@cache
def taking(kind: Any) -> IFeature:
    """Create a tool with one argument of a type."""

    async def take(value: Any) -> None:
        """Take it."""

    take.__annotations__["value"] = kind
    return tool(take)


def shown(kind: Any, value: Any) -> Any:
    """Return the redacted form of an argument of a type."""
    return redacted(taking(kind), {"value": value})["value"]


@cache
def compiled(feature: IFeature) -> Redact | None:
    return redactor(FeatureSpec(feature, "tool", feature.name, LIMITS, None))


def redacted(feature: IFeature, arguments: Any) -> Any:
    redact = compiled(feature)
    assert redact is not None
    result = redact(json.dumps(arguments).encode())
    assert result is not None
    return json.loads(bytes(result))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (str, "a", "a"),
        (Token, SECRET, "***"),
        (Annotated[str, Sensitive()], SECRET, "***"),
        (Annotated[str, Field(min_length=1), Sensitive], SECRET, "***"),
        (Annotated[Token, Field(min_length=1)], SECRET, "***"),
        (SecretStr, SECRET, "***"),
        (Secret[int], 1234, "***"),
        (SecretBytes, SECRET, "***"),
        (Optional[Token], SECRET, "***"),  # noqa: UP045 - it is another type than the one below
        (Token | None, SECRET, "***"),
        (int | Token, SECRET, "***"),
        (list[Token], [SECRET, SECRET], ["***", "***"]),
        (tuple[int, Token], [1, SECRET], ["***", "***"]),
        (Sequence[int], [1, 2], [1, 2]),
        (dict[str, Token], {"a": SECRET}, {"a": "***"}),
        (dict[Token, int], {SECRET: 1}, "***"),
        (
            Mapping[str, list[Login]],
            {"a": [{"user": "u", "password": SECRET}]},
            {"a": [{"user": "u", "password": "***"}]},
        ),
        (Annotated[Login, Sensitive], {"user": SECRET, "password": SECRET}, "***"),
        (Login | int, LOGIN, MASKED),
        (Login | Options, {"user": "u", "token": SECRET, "x": SECRET}, {"user": "u", "token": "***"}),
        (Login | dict[str, str], LOGIN, MASKED),
        (Pair, {"name": "n", "token": SECRET}, "***"),
        (Pair, ["n", SECRET], ["***", "***"]),
        (Options, {"size": 1, "token": SECRET}, {"size": 1, "token": "***"}),
        (Plain, {"name": "n", "token": SECRET}, {"name": "n", "token": "***"}),
        (Checked, {"name": "n", "t": SECRET}, {"name": "n", "t": "***"}),
        (Box[Token], {"content": SECRET}, {"content": "***"}),
        (Box[int], {"content": 1}, {"content": 1}),
        (Tokens, [SECRET], ["***"]),
        (
            Node,
            {"name": "a", "children": [{"name": "b", "token": SECRET}]},
            {"name": "a", "children": [{"name": "b", "token": "***"}]},
        ),
        (Aliased, {"one": SECRET, "deux": "2", "deep": {"down": SECRET}}, {"one": "***", "deep": "***"}),
        (Aliased, {"first": SECRET, "two": "2"}, {"two": "2"}),
        (Welcoming, {"known": "k", SECRET: SECRET}, {"known": "k"}),
        (Parsed, f"u:{SECRET}", "***"),
        (Parsed | None, f"u:{SECRET}", "***"),
        (UserId, "u", "u"),
        (Colour, "red", "red"),
        (Literal["a", 1], "a", "a"),
        (Any, {"a": [1.50, None, True]}, {"a": [1.5, None, True]}),
        (JsonValue, [{"a": 1}], [{"a": 1}]),
        (dict, {"a": 1}, {"a": 1}),
        (list, [1], [1]),
        (float | None, None, None),
        (Annotated[Token, WithJsonSchema({"type": "string"})], SECRET, "***"),
        (Annotated[SecretStr, WithJsonSchema({"type": "string"})], SECRET, "***"),
        (Annotated[list[Login], WithJsonSchema({"type": "array", "items": {}})], [LOGIN], "***"),
        (list[Drawn], [{"user": "u", "password": SECRET}], ["***"]),
        (Embellished, LOGIN, MASKED),
        (Annotated[Login, BeforeValidator(json.loads, json_schema_input_type=str)], json.dumps(LOGIN), "***"),
        (Annotated[Login, PlainValidator(Login.model_validate)], LOGIN, "***"),
        (Piped, {"login": json.dumps(LOGIN)}, {"login": "***"}),
        (Json[Login], json.dumps(LOGIN), "***"),
        (dict[Annotated[str, Field(pattern="^a")], Token], {"a": SECRET}, {"a": "***"}),
        (dict[Annotated[int, Sensitive], int], {"1234": 1}, "***"),
        (Within, {"user": {"password": SECRET}}, {"user": "***"}),
        (Node | Grove, {"name": "a", "children": deep(100)}, {"name": "a", "children": deep(100)}),
    ],
)
def test_types(kind: Any, value: Any, expected: Any) -> None:
    """Marked values are masked at any depth, and values without a known type are omitted."""
    assert shown(kind, value) == expected


@given(JSON)
def test_a_sensitive_value_of_any_form_is_masked(value: Any) -> None:
    """No part of a sensitive value is shown, whatever its validator does."""
    assert shown(Annotated[Any, Sensitive], value) == "***"


@given(JSON)
def test_a_value_of_another_form_than_its_type_is_not_shown(value: Any) -> None:
    """Values that a model accepts but its fields do not describe stay hidden."""
    result = shown(Login, value)
    assert result == "***" or (isinstance(result, dict) and result.keys() <= {"user", "password"})


@given(st.text(min_size=8).filter(lambda text: text not in json.dumps("user password ***")))
def test_secrets_never_appear(secret: str) -> None:
    """Records contain neither sensitive values nor unknown names and values of nested models."""
    value = [{"user": "u", "password": secret}, {"user": "u", "password": "p", secret: secret}]
    assert secret not in str(shown(list[Login], value))


class SignIn(ITool[Login, str]):
    name = "sign_in"

    async def execute(self, arguments: Login, context: Context) -> str:
        return "welcome"


class Desk:
    @tool
    async def open_door(self, code: Annotated[int, Sensitive], door: str = Field("front", alias="which")) -> str:
        """Open a door."""
        return door


@prompt
async def greeting(name: str, secret: Annotated[str, Sensitive] = "") -> str:
    """Greet."""
    return name


def test_every_kind_of_feature() -> None:
    """Tools with models, functions, methods and prompts are treated alike."""
    [door] = tools_of(Desk())
    assert redacted(SignIn(), {"user": "u", "password": SECRET}) == {"user": "u", "password": "***"}
    assert redacted(door, {"code": 1234, "which": "back"}) == {"code": "***", "which": "back"}
    assert redacted(greeting, {"name": "Ada", "secret": SECRET}) == {"name": "Ada", "secret": "***"}


def test_no_arguments_are_shown_as_an_empty_object() -> None:
    """A feature without arguments shows an empty object."""

    async def take() -> None:
        """Take nothing."""

    assert redacted(tool(take), {}) == {}


def test_a_raw_schema_shows_nothing() -> None:
    """The arguments of a tool with a raw schema are never shown."""
    raw = SchemaTool("raw", {"properties": {"a": {}}}, print)
    assert compiled(raw) is None


async def test_arguments_are_shown_if_configured() -> None:
    """Records contain arguments only if configured, and always redacted."""
    sink = MemorySink()
    arguments = {"user": "alice", "password": SECRET}
    await Pipeline(audit_into(sink), SignIn()).run(arguments)
    await Pipeline(audit_into(sink, arguments="redacted"), SignIn()).run(arguments)
    without, with_arguments = sink.ends
    assert without.arguments is None
    assert with_arguments.arguments is not None
    assert json.loads(bytes(with_arguments.arguments)) == {"user": "alice", "password": "***"}
    assert SECRET not in str(sink.ends)


async def test_large_arguments_are_not_shown() -> None:
    """Large arguments are not shown."""
    sink = MemorySink()
    await Pipeline(audit_into(sink, arguments="redacted"), Echo()).run({"text": "x" * 20_000})
    assert sink.ends[0].arguments is None
    assert record().arguments is None
