"""Tools of a raw JSON Schema: bad schemas end the start, bad arguments name the field."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pytest

from axolotl_core import ConfigurationError, InvalidArguments, SchemaTool, ToolRegistry
from axolotl_core.schema import JsonSchema
from tests.core.samples import call, read

_watched: list[str] | None = None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _watched is not None and event.startswith(("socket.", "urllib.", "open")):
        _watched.append(event)


sys.addaudithook(_watch)  # hooks stay for ever: one is enough


@contextmanager
def watched_io() -> Iterator[list[str]]:
    """Write down every socket and file that is opened meanwhile."""
    global _watched  # noqa: PLW0603
    events: list[str] = []
    _watched = events
    try:
        yield events
    finally:
        _watched = None


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def schema_tool(schema: JsonSchema) -> SchemaTool:
    return SchemaTool("raw", schema, echo)


def refusal_of(schema: JsonSchema, **arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as refused:
        read(schema_tool(schema), **arguments)
    return refused.value.message


def test_the_watcher_sees_sockets() -> None:
    """The instrument of the next tests works: a socket that is opened is seen."""
    import socket

    with watched_io() as events:
        socket.socket().close()
    assert "socket.__new__" in events


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        pytest.param({"properties": {"a": {"type": "strin"}}}, 'properties.a.type: "strin"', id="unknown-type"),
        pytest.param({"properties": []}, "properties: [] is not of type", id="properties-no-object"),
        pytest.param({"required": "a"}, "required: ", id="required-no-list"),
        pytest.param({"properties": {"a": {"pattern": "("}}}, "properties.a.pattern: ", id="broken-pattern"),
        pytest.param({"properties": {"a": {"pattern": "(?=x)"}}}, "properties.a.pattern: ", id="look-ahead"),
        pytest.param({"properties": {"a": {"$ref": "#/$defs/x"}}}, "/$defs/x", id="dangling-reference"),
        pytest.param({"$schema": "https://example.com/own"}, "https://example.com/own", id="foreign-dialect"),
        pytest.param({"type": "array"}, 'must have "type": "object"', id="array-root"),
        pytest.param({"type": ["object", "null"]}, 'must have "type": "object"', id="union-root"),
    ],
)
def test_a_bad_schema_is_refused_at_registration(schema: JsonSchema, text: str) -> None:
    """A schema that is not valid is told with the tool's name and the place, and nothing is registered."""
    registry = ToolRegistry()
    with pytest.raises(ConfigurationError) as refused:
        registry.register_tool("raw", schema, echo)
    assert "Tool 'raw': " in str(refused.value)
    assert text in str(refused.value)
    assert len(registry) == 0


def test_a_schema_nested_without_end_is_refused() -> None:
    """A schema too deep to compile is a mistake in the configuration, not a crash."""
    schema: JsonSchema = {}
    for _ in range(5_000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(ConfigurationError, match="Tool 'raw': the input schema is not valid"):
        schema_tool(schema)


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param("https://example.com/schema.json", id="https"),
        pytest.param("http://127.0.0.1:9/schema.json#/a", id="http"),
        pytest.param("file:///etc/hostname", id="file"),
        pytest.param("other.json", id="relative"),
        pytest.param("urn:example:schema", id="urn"),
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_references_are_never_fetched(keyword: str, reference: str) -> None:
    """A reference out of the schema is refused without a socket or a file being opened."""
    schema = {"$id": "https://example.com/root.json", "properties": {"a": {keyword: reference}}}
    schema_tool({})
    with watched_io() as events, pytest.raises(ConfigurationError, match="input schema is not valid"):
        schema_tool(schema)
    assert events == []


def test_references_inside_the_schema_work() -> None:
    """Definitions of the schema itself may be used, recursively too."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}
    schema = {"properties": {"node": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    assert read(schema_tool(schema), node={"v": 1, "next": {"v": 2}})
    assert "node.next.v: " in refusal_of(schema, node={"next": {"v": "two"}})


@pytest.mark.parametrize("pattern", [pytest.param("^(a+)+$", id="nested"), pytest.param("^(a|aa)*$", id="ambiguous")])
def test_a_hostile_pattern_finishes_at_once(pattern: str) -> None:
    """Patterns run in linear time: the text that takes a backtracking engine for ever takes no time."""
    schema: JsonSchema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    started = perf_counter()
    text = refusal_of(schema, a="a" * 50_000 + "!")
    assert perf_counter() - started < 5
    assert text.endswith(f'does not match "{pattern}"')


@pytest.mark.parametrize(
    ("schema", "arguments", "text"),
    [
        pytest.param({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, 'a: "x" is not of type', id="type"),
        pytest.param({"required": ["b"]}, {}, 'arguments: "b" is a required property', id="required"),
        pytest.param({"additionalProperties": False}, {"c": 1}, "'c' was unexpected", id="unknown"),
        pytest.param({"unevaluatedProperties": False}, {"c": 1}, "'c' was unexpected", id="unevaluated"),
        pytest.param(
            {"properties": {"a": {"items": {"properties": {"k": {"enum": ["x", "y"]}}}}}},
            {"a": [{"k": "x"}, {"k": "z"}]},
            'a[1].k: "z" is not one of "x" or "y"',
            id="nested",
        ),
        pytest.param({"properties": {"a": {"minimum": 1}}}, {"a": 0}, "a: 0 is less than the minimum of 1", id="range"),
        pytest.param(
            {"properties": {"a": {"const": 1}, "b": {"const": 1}}}, {"a": 0, "b": 0}, "; b: ", id="all-findings-at-once"
        ),
    ],
)
def test_a_refusal_names_the_field(schema: JsonSchema, arguments: dict[str, Any], text: str) -> None:
    """A caller learns which argument is wrong, what it was and what it should be."""
    message = refusal_of(schema, **arguments)
    assert message.startswith("Invalid arguments: ")
    assert text in message


def test_a_long_value_does_not_hide_what_was_expected() -> None:
    """A refusal stays short and keeps both ends: the field and the rule."""
    message = refusal_of({"properties": {"a": {"type": "string", "maxLength": 5}}}, a="x" * 10_000)
    assert message.startswith('Invalid arguments: a: "xxx')
    assert message.endswith("is longer than 5 characters")
    assert len(message) < 300


def test_a_schema_without_type_is_an_object() -> None:
    """The root's type is added where it is missing."""
    assert schema_tool({"properties": {}}).input_schema == {"type": "object", "properties": {}}


def test_the_given_schema_is_published_unchanged() -> None:
    """Keywords that nobody knows are kept, and the caller's dict is not touched."""
    schema: JsonSchema = {"properties": {"a": {"type": "string", "x-own": 1}}, "title": "T"}
    assert schema_tool(schema).input_schema == {"type": "object", **schema}
    assert "type" not in schema


def test_arguments_are_never_coerced() -> None:
    """A raw schema means what it says, also where coercion is on."""
    with pytest.raises(InvalidArguments):
        read(schema_tool({"properties": {"a": {"type": "integer"}}}), coerce=True, a="5")


def test_unreadable_arguments_are_refused() -> None:
    """What is no JSON is the caller's mistake."""
    with pytest.raises(InvalidArguments, match="not readable as JSON"):
        schema_tool({}).argument_parser(coerce=False)(b'{"a":')


class Handler:
    """A handler that is an object."""

    async def __call__(self, arguments: dict[str, Any]) -> str:
        return f"async {arguments['a']}"


async def async_handler(arguments: dict[str, Any]) -> str:
    return f"async {arguments['a']}"


def plain_handler(arguments: dict[str, Any]) -> str:
    return f"plain {arguments['a']}"


@pytest.mark.parametrize(
    ("handler", "execution", "answer"),
    [
        pytest.param(async_handler, "loop", "async 1", id="async"),
        pytest.param(plain_handler, "thread", "plain 1", id="plain"),
        pytest.param(Handler(), "loop", "async 1", id="async-object"),
        pytest.param(lambda arguments: f"plain {arguments['a']}", "thread", "plain 1", id="lambda"),
    ],
)
async def test_a_handler_runs_where_its_kind_belongs(handler: Any, execution: str, answer: str) -> None:
    """An async handler runs on the loop, any other in a thread; both get the plain dict."""
    made = SchemaTool("raw", {}, handler)
    assert (made.execution, made.suspends) == (execution, execution == "loop")
    assert await call(made, a=1) == answer


def test_the_place_of_execution_can_be_chosen() -> None:
    """`execution` beats the kind of the handler."""
    assert SchemaTool("raw", {}, plain_handler, execution="loop").execution == "loop"


def test_register_tool_makes_and_registers() -> None:
    """A registry makes the tool of name, schema, handler and description."""
    registry = ToolRegistry()
    assert registry.register_tool("Raw", {"properties": {"a": {}}}, echo, description="Echoes")
    assert not registry.register_tool("RAW", {}, echo)
    made = registry.try_get("raw")
    assert isinstance(made, SchemaTool)
    assert (made.name, made.description, made.output_schema) == ("Raw", "Echoes", None)
