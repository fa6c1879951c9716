"""Arguments repeated in headers: annotations, and errors for invalid ones."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from axolotl_core import ConfigurationError, Context, ITool, tool
from axolotl_core.features.spec import HeaderParameter, Limits, ToolSpec, header_parameters

LIMITS = Limits(timeout_seconds=1.0, max_concurrency=None, execution="loop", coerce_arguments=False)


def mirrored(kind: Any = "string", name: Any = "Tenant") -> dict[str, Any]:
    """Write an annotated schema."""
    return {"type": kind, "x-mcp-header": name}


def found(**properties: Any) -> list[tuple[bytes, tuple[str, ...]]]:
    """Find the annotated properties."""
    schema = {"type": "object", "properties": properties}
    return [(parameter.header, parameter.path) for parameter in header_parameters("t", schema)]


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_simple_arguments_may_be_mirrored(kind: str) -> None:
    """Strings, integers and booleans can be in a header; names ignore case."""
    assert found(tenant=mirrored(kind), other={"type": "number"}) == [(b"mcp-param-tenant", ("tenant",))]


def test_nested_arguments_are_found_by_their_path() -> None:
    """A property of a property is mirrored too, at any depth."""
    inner = {"type": "object", "properties": {"id": mirrored("integer", "Account")}}
    outer = {"type": "object", "properties": {"account": inner, "region": mirrored(name="Region")}}
    assert found(request=outer) == [
        (b"mcp-param-account", ("request", "account", "id")),
        (b"mcp-param-region", ("request", "region")),
    ]


def test_a_schema_without_annotations_has_none() -> None:
    """Tools without annotations have no header parameters."""
    assert header_parameters("t", {"type": "object"}) == ()
    assert found(a={"type": "string"}, b=True) == []


@pytest.mark.parametrize(
    "name", [pytest.param("Method", id="standard-word"), pytest.param("a!#$%&'*+-.^_`|~9", id="every-token-character")]
)
def test_any_token_is_a_name(name: str) -> None:
    """The name may use every character of a header token."""
    assert found(a=mirrored(name=name)) == [(b"mcp-param-" + name.lower().encode(), ("a",))]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("a b", id="space"),
        pytest.param("a:b", id="colon"),
        pytest.param("a\r\nb", id="line-break"),
        pytest.param("Tenant\n", id="line-break-at-the-end"),
        pytest.param("a\x00", id="control"),
        pytest.param("größe", id="not-ascii"),
        pytest.param("(a)", id="parentheses"),
        pytest.param(1, id="number"),
        pytest.param(None, id="null"),
        pytest.param(["a"], id="list"),
    ],
)
def test_header_names_must_be_tokens(name: Any) -> None:
    """Clients drop a tool whose header could not be sent."""
    with pytest.raises(ConfigurationError, match="'t', argument 'a': x-mcp-header must be a header token"):
        found(a=mirrored(name=name))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("number", id="number"),
        pytest.param("array", id="array"),
        pytest.param("object", id="object"),
        pytest.param("null", id="null"),
        pytest.param(["string", "null"], id="union"),
        pytest.param(["string"], id="list-of-one"),
        pytest.param(None, id="missing"),
    ],
)
def test_only_simple_types_may_be_mirrored(kind: Any) -> None:
    """Other types cannot be in a header."""
    with pytest.raises(ConfigurationError, match="'a': x-mcp-header is only allowed on a string, integer or boolean"):
        found(a=mirrored(kind))


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param("Tenant", "Tenant", id="same"), pytest.param("Tenant", "tENANT", id="any-case")]
)
def test_a_header_belongs_to_one_argument(first: str, second: str) -> None:
    """Two arguments cannot share a header, in any case and at any depth."""
    nested = {"type": "object", "properties": {"c": mirrored(name=second)}}
    for other in (mirrored(name=second), nested):
        with pytest.raises(ConfigurationError, match="two arguments have the same x-mcp-header"):
            found(a=mirrored(name=first), b=other)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"properties": {"a": {"type": "array", "items": mirrored()}}}, id="items"),
        pytest.param({"properties": {"a": {"anyOf": [mirrored(), {"type": "null"}]}}}, id="any-of"),
        pytest.param({"properties": {"a": {"oneOf": [mirrored()]}}}, id="one-of"),
        pytest.param({"allOf": [{"properties": {"a": mirrored()}}]}, id="all-of"),
        pytest.param({"if": {"properties": {"a": mirrored()}}}, id="if"),
        pytest.param({"not": {"properties": {"a": mirrored()}}}, id="not"),
        pytest.param({"additionalProperties": mirrored()}, id="additional-properties"),
        pytest.param({"patternProperties": {"^a": mirrored()}}, id="pattern-properties"),
        pytest.param({"properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": mirrored()}}, id="reference"),
        pytest.param({"type": "object", "x-mcp-header": "Root"}, id="root"),
    ],
)
def test_an_annotation_out_of_reach_is_refused(schema: dict[str, Any]) -> None:
    """An annotation is only allowed in `properties`."""
    with pytest.raises(ConfigurationError, match="'t': x-mcp-header is only allowed in `properties`"):
        header_parameters("t", schema)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        pytest.param({"a": {"b": "x"}}, "x", id="present"),
        pytest.param({"a": {"b": None}}, None, id="null"),
        pytest.param({"a": {"b": False}}, False, id="false"),
        pytest.param({"a": {}}, None, id="absent"),
        pytest.param({"a": 5}, None, id="parent-no-object"),
        pytest.param({}, None, id="parent-absent"),
        pytest.param([], None, id="no-object"),
    ],
)
def test_a_value_is_read_at_its_path(arguments: Any, value: Any) -> None:
    """The argument is found where it is; None stands for absent and null."""
    assert HeaderParameter(b"mcp-param-b", ("a", "b")).value_in(arguments) == value


Tenant = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Tenant"})]


class Lookup(BaseModel):
    tenant: Tenant
    key: str


class Find(ITool[Lookup, str]):
    name = "find"

    async def execute(self, arguments: Lookup, context: Context) -> str:
        return arguments.key


@tool
async def find(tenant: Tenant, key: str) -> str:
    return key


@pytest.mark.parametrize("found_by", [pytest.param(Find(), id="class"), pytest.param(find, id="function")])
def test_a_spec_knows_the_mirrored_arguments_of_its_tool(found_by: ITool[Any, Any]) -> None:
    """An annotation on a model's field or a function's parameter reaches the spec."""
    assert ToolSpec.of(found_by, LIMITS).header_parameters == (HeaderParameter(b"mcp-param-tenant", ("tenant",)),)


def test_invalid_annotations_are_refused_by_the_spec() -> None:
    """An invalid annotation raises ConfigurationError when the spec is created."""

    @tool
    async def bad(limit: Annotated[float, Field(json_schema_extra={"x-mcp-header": "Limit"})]) -> None: ...

    with pytest.raises(ConfigurationError, match="Tool 'bad', argument 'limit'"):
        ToolSpec.of(bad, LIMITS)
