"""@resource: functions and methods as resources and resource templates."""

import re
from collections.abc import AsyncIterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from axolotl_core import CacheHint, ConfigurationError, Context, InvalidArguments, ResourceRegistry, resource, tool
from axolotl_core.content import Annotations, BlobResource, TextResource
from axolotl_core.resources.resource import FunctionResource, FunctionResourceTemplate
from tests.support.core.feature_calls import URI, read, run, text_at


@resource(
    "config://app",
    name="settings",
    mime_type="application/x-config",
    size=2,
    annotations=Annotations(priority=1),
    cache=CacheHint(60, "public"),
    meta={"a": 1},
)
def config() -> dict[str, int]:
    """All settings."""
    return {}


@resource("users://{user_id}/posts{?since,kind,tags*}", title="Posts", unscreened=frozenset({"user_id"}))
async def posts(
    user_id: int,
    context: Context,
    since: date | None = None,
    kind: Literal["short", "long"] = "short",
    labels: Annotated[list[str] | None, Field(alias="tags")] = None,
) -> str:
    """The posts of a user."""
    return f"{user_id} {since} {kind} {labels} {context.uri}"


async def test_a_uri_without_variables_is_a_resource() -> None:
    """The options of the decorator and the function determine the attributes."""
    assert isinstance(config, FunctionResource)
    assert (config.uri, config.name, config.description) == ("config://app", "settings", "All settings.")
    assert (config.mime_type, config.size, config.meta) == ("application/x-config", 2, {"a": 1})
    assert (config.annotations, config.cache) == (Annotations(priority=1), CacheHint(60, "public"))
    assert await run(config) == (TextResource(URI, "{}", "application/x-config"),)


async def test_a_uri_with_variables_is_a_template() -> None:
    """Its variables are the parameters, converted from strings; absent ones have their default."""
    assert isinstance(posts, FunctionResourceTemplate)
    ResourceRegistry([posts])
    assert (posts.name, posts.title, posts.unscreened) == ("posts", "Posts", frozenset({"user_id"}))
    plain, full = "users://5/posts", "users://5/posts?since=2024-01-02&kind=long&tags=a&tags=b"
    assert await text_at(posts, plain) == f"5 None short None {plain}"
    assert await text_at(posts, full) == f"5 2024-01-02 long ['a', 'b'] {full}"


def test_variables_that_do_not_fit_are_refused() -> None:
    """All problems are reported at once."""
    with pytest.raises(InvalidArguments, match=r"user_id: .*kind: "):
        read(posts, user_id="me", kind="huge")


def test_the_function_can_still_be_called() -> None:
    """Calling the resource calls the function."""
    assert config() == {}


def test_a_plain_function_runs_in_a_thread() -> None:
    """A plain `def` may block, an `async def` waits on the loop."""
    assert (config.execution, config.suspends) == ("thread", False)
    assert (posts.execution, posts.suspends) == ("loop", True)


async def test_the_context_is_not_a_variable() -> None:
    """A fixed resource may take the context, and nothing else."""

    @resource("test://here")
    def here(context: Context) -> str:
        return context.uri

    assert await run(here) == (TextResource(URI, URI, "text/plain"),)


@resource("stream://text")
async def texts() -> AsyncIterator[str]:
    yield "a"
    yield "b"


@resource("stream://bytes")
async def chunks() -> AsyncIterator[bytes]:
    yield b"\xff"
    yield b"\x00"


@resource("stream://undeclared")
async def undeclared():  # type: ignore[no-untyped-def]
    yield b"\xff"
    yield b"\x00"


@resource("stream://no-bytes")
async def no_chunks() -> AsyncIterator[bytes]:
    for number in range(0):
        yield bytes(number)


@resource("stream://{count}")
async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


@resource("stream://contents")
async def contents() -> AsyncIterator[TextResource]:
    yield TextResource("a://1", "x")
    yield TextResource("a://2", "y")


@resource("stream://list")
def listed() -> list[bytes]:
    return [b"a", b"b"]


BLOB = "application/octet-stream"


@pytest.mark.parametrize(
    ("made", "output"),
    [
        pytest.param(texts, TextResource(URI, "ab", "text/plain"), id="text"),
        pytest.param(chunks, BlobResource(URI, b"\xff\x00", BLOB), id="bytes"),
        pytest.param(undeclared, BlobResource(URI, b"\xff\x00", BLOB), id="undeclared-bytes"),
        pytest.param(no_chunks, BlobResource(URI, b"", BLOB), id="no-bytes"),
        pytest.param(listed, TextResource(URI, '["a","b"]', "application/json"), id="a-list-is-no-stream"),
    ],
)
async def test_the_pieces_of_a_generator_are_put_together(made: Any, output: Any) -> None:
    """Texts become one text, bytes become one blob."""
    assert await run(made) == (output,)


async def test_other_items_of_a_generator_are_listed() -> None:
    """Contents stay contents, anything else is a JSON list."""
    assert await run(contents) == (TextResource("a://1", "x"), TextResource("a://2", "y"))
    assert await run(numbers, count="2") == (TextResource(URI, "[0,1]", "application/json"),)


@posts.completes("user_id")
def users(value: str, known: Mapping[str, str]) -> list[str]:
    return [value, *known]


async def test_variables_are_completed() -> None:
    """Variables are completed by their completer, otherwise by their type."""
    assert isinstance(posts, FunctionResourceTemplate)
    assert await posts.complete("user_id", "5", {"kind": "long"}) == ["5", "kind"]
    assert await posts.complete("kind", "l", {}) == ["long"]
    assert await posts.complete("since", "", {}) == []


@pytest.mark.parametrize(
    ("made", "has"),
    [pytest.param(posts, "user_id, since, kind, tags", id="template"), pytest.param(config, "none", id="fixed")],
)
def test_a_completer_of_no_variable_is_refused(made: Any, has: str) -> None:
    """The error lists the variables."""
    with pytest.raises(
        ConfigurationError, match=f"users completes 'labels', which is not an argument; arguments: {has}"
    ):
        made.completes("labels")(users)


def takes(name: str) -> str:
    return name


@pytest.mark.parametrize(
    ("uri", "options", "text"),
    [
        pytest.param("a://b", {}, "the URI has no {name}, which takes needs", id="parameter"),
        pytest.param("a://b", {"unscreened": {"b"}}, "unscreened is for a URI with variables", id="unscreened"),
        pytest.param("a://{name}", {"size": 5}, "size is for a URI without variables", id="size"),
        pytest.param("a://{name}", {"uri": "a://c"}, "has no option uri", id="unknown-option"),
        pytest.param(takes, {}, '@resource needs the URI: write @resource("config://app")', id="no-uri"),
    ],
)
def test_invalid_decorators_are_refused(uri: Any, options: dict[str, Any], text: str) -> None:
    """The error explains the problem."""
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        resource(uri, **options)(takes)


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        pytest.param("a://{other}", "other is in the template, but not in the variables", id="other"),
        pytest.param("a://b{?name}", "name is optional in the URI; add a default", id="no-default"),
        pytest.param("a://{name*}", "name cannot be parsed from strings", id="list"),
        pytest.param("a://{name", "'{' is unbalanced", id="malformed"),
    ],
)
def test_a_template_must_fit_its_function(uri: str, text: str) -> None:
    """Invalid resources are refused at registration."""
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        ResourceRegistry([resource(uri)(takes)])


def test_a_class_method_or_a_tool_is_refused() -> None:
    """The error says what the decorator applies to."""
    with pytest.raises(ConfigurationError, match="a class method cannot be a resource"):
        resource("a://b")(classmethod(lambda cls: ""))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="@resource on '<lambda>', which is already a feature"):
        resource("a://b")(tool(lambda: ""))
