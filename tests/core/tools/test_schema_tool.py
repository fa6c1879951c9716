"""SchemaTool: invalid schemas and invalid arguments."""

from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any, ClassVar

import pytest

from axolotl_core import ConfigurationError, InvalidArguments, ToolRegistry
from axolotl_core.errors import InvalidRequest
from axolotl_core.schema import JsonSchema
from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.core.sample_tools import call, read, read_bytes


class Web(BaseHTTPRequestHandler):
    """Serves a schema that accepts anything, and counts who asks for it."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def web() -> Iterator[str]:
    """Run a web server that would answer; the value is its address."""
    Web.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def schema_tool(schema: JsonSchema) -> SchemaTool:
    return SchemaTool("raw", schema, echo)


def refusal_of(schema: JsonSchema, **arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as refused:
        read(schema_tool(schema), **arguments)
    return refused.value.message


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
    """An invalid schema is refused with the tool's name and the path, and nothing is registered."""
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
    with pytest.raises(ConfigurationError, match="Tool 'raw': the input schema is invalid"):
        schema_tool(schema)


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
def test_the_network_is_never_asked(keyword: str, web: str) -> None:
    """A reference to the network is refused, although the server would answer."""
    schema: JsonSchema = {keyword: f"{web}/schema.json"}
    for whole in (schema, {"properties": {"a": schema}}, {"$defs": {"unused": schema}}):
        with suppress(ConfigurationError):
            read(schema_tool(whole), a=1)
    with pytest.raises(ConfigurationError, match=r"schema\.json"):
        schema_tool(schema)
    assert Web.asked == []


@pytest.mark.parametrize(
    "base", [pytest.param({}, id="absolute"), pytest.param({"$id": "http://{web}/root.json"}, id="relative")]
)
def test_a_reference_is_told_by_its_address(base: dict[str, str], web: str) -> None:
    """The error contains the resolved reference."""
    root = {key: value.replace("http://{web}", web) for key, value in base.items()}
    reference = "other.json" if root else f"{web}/other.json"
    with pytest.raises(ConfigurationError, match=f"{web}/other.json; references must stay inside the schema"):
        schema_tool({**root, "properties": {"a": {"$ref": reference}}})
    assert Web.asked == []


def test_files_are_never_read(tmp_path: Path) -> None:
    """A reference to a file is refused, although it is there and a good schema."""
    file = tmp_path / "schema.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="references must stay inside the schema"):
        schema_tool({"properties": {"a": {"$ref": file.as_uri()}}})


def test_references_inside_the_schema_work() -> None:
    """Definitions of the schema itself may be used, recursively too."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}
    schema = {"properties": {"node": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    assert read(schema_tool(schema), node={"v": 1, "next": {"v": 2}})
    assert "node.next.v: " in refusal_of(schema, node={"next": {"v": "two"}})


@pytest.mark.parametrize("pattern", [pytest.param("^(a+)+$", id="nested"), pytest.param("^(a|aa)*$", id="ambiguous")])
def test_a_hostile_pattern_finishes_at_once(pattern: str) -> None:
    """Patterns run in linear time."""
    schema: JsonSchema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    started = perf_counter()
    text = refusal_of(schema, a="a" * 50_000 + "!")
    assert perf_counter() - started < 10
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
    """The error contains the argument, its value and the expectation."""
    message = refusal_of(schema, **arguments)
    assert message.startswith("Invalid arguments: ")
    assert text in message


def test_a_long_value_does_not_hide_what_was_expected() -> None:
    """A long error is shortened in the middle."""
    message = refusal_of({"properties": {"a": {"type": "string", "maxLength": 5}}}, a="x" * 10_000)
    assert message.startswith('Invalid arguments: a: "xxx')
    assert message.endswith("is longer than 5 characters")
    assert len(message) < 300


def test_a_schema_without_type_is_an_object() -> None:
    """The root's type is added where it is missing."""
    assert schema_tool({"properties": {}}).input_schema == {"type": "object", "properties": {}}


def test_the_given_schema_is_published_unchanged() -> None:
    """Unknown keywords are kept, and the caller's dict is not changed."""
    schema: JsonSchema = {"properties": {"a": {"type": "string", "x-own": 1}}, "title": "T"}
    assert schema_tool(schema).input_schema == {"type": "object", **schema}
    assert "type" not in schema


def test_arguments_are_never_coerced() -> None:
    """A raw schema is never coerced."""
    with pytest.raises(InvalidArguments):
        read(schema_tool({"properties": {"a": {"type": "integer"}}}), coerce=True, a="5")


def test_unreadable_arguments_are_refused() -> None:
    """Invalid JSON is refused as invalid arguments."""
    with pytest.raises(InvalidArguments, match="not valid JSON"):
        read_bytes(schema_tool({}), b'{"a":')


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
    """`execution` overrides the default of the handler."""
    assert SchemaTool("raw", {}, plain_handler, execution="loop").execution == "loop"


def test_register_tool_makes_and_registers() -> None:
    """A registry makes the tool of name, schema, handler and description."""
    registry = ToolRegistry()
    assert registry.register_tool("Raw", {"properties": {"a": {}}}, echo, description="Echoes")
    assert not registry.register_tool("RAW", {}, echo)
    made = registry.try_get("raw")
    assert isinstance(made, SchemaTool)
    assert (made.name, made.description, made.output_schema) == ("Raw", "Echoes", None)


def nested(levels: int) -> dict[str, Any]:
    """Return a schema in which each definition refers twice to the one before."""
    definitions: dict[str, Any] = {"a0": {"type": "string"}}
    for level in range(1, levels + 1):
        definitions[f"a{level}"] = {"anyOf": [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"properties": {"x": {"$ref": f"#/$defs/a{levels}"}}, "$defs": definitions}


def test_a_schema_cannot_expand_without_limit() -> None:
    """A small schema whose errors would take seconds to describe is refused, with the reason."""
    with pytest.raises(ConfigurationError, match=r"'t': the input schema has .* but at most 10000 are allowed"):
        SchemaTool("t", nested(17), dict)
    SchemaTool("t", nested(8), dict)


def test_a_schema_may_refer_to_itself() -> None:
    """A recursive schema is counted once."""
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#/$defs/t"}}}
    SchemaTool("t", {**tree, "$defs": {"t": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}}, dict)


@pytest.mark.parametrize("size", [100, 100_000])
def test_duplicate_members_are_refused(size: int) -> None:
    """Arguments with two members of the same name are refused, at any depth."""
    raw = b'{"text":"%b","inner":{"a":1,"a":2}}' % (b"x" * size)
    with pytest.raises(InvalidRequest, match='the member "a" occurs more than once'):
        read_bytes(SchemaTool("t", {}, dict), raw)
