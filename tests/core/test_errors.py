"""The tree of errors in the docstring matches the classes."""

import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from axolotl_core import errors
from axolotl_core.errors import (
    AxolotlError,
    ConfigurationError,
    Declined,
    Forbidden,
    HeaderMismatch,
    InputRequired,
    InternalError,
    InvalidArguments,
    InvalidEnvelope,
    InvalidParams,
    InvalidRequest,
    InvalidToolName,
    MethodNotFound,
    MissingCapability,
    Overloaded,
    ParseError,
    PromptNotFound,
    ProtocolError,
    ResourceNotFound,
    ToolError,
    ToolNotFound,
    UnsupportedVersion,
)

Edge = tuple[str, str]
ROOT = "(root)"
"""Stands above what has nothing above it in the drawing."""


def drawn_edges(drawing: str) -> Iterator[Edge]:
    """Read the tree in the docstring: deeper lines are children, `·` stands between siblings, `─` before a child."""
    above: list[tuple[int, str]] = []
    for line in drawing.splitlines():
        found = re.match(r"^    ([│├└─ ]*)([A-Z]\w+(?: (?:·|─) [A-Z]\w+)*)", line)
        if found is None:
            continue
        depth, names = len(found.group(1)), found.group(2)
        above = [(other, name) for other, name in above if other < depth]
        parent = above[-1][1] if above else ROOT
        for part in names.split(" ─ "):
            siblings = part.split(" · ")
            yield from ((parent, name) for name in siblings)
            parent = siblings[-1]
        above.append((depth, names.split(" ")[0]))


def real_edges(kind: type[BaseException], parent: str = ROOT) -> Iterator[Edge]:
    """Walk the classes of the module, from one of them down."""
    yield parent, kind.__name__
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from real_edges(child, kind.__name__)


def all_edges() -> list[Edge]:
    """Walk both trees: errors, and exceptions that are not errors."""
    return sorted([*real_edges(AxolotlError), *real_edges(InputRequired)])


def test_the_drawn_tree_is_the_real_one() -> None:
    """The tree contains all classes under their parents, and no others."""
    drawn = sorted(drawn_edges(errors.__doc__ or ""))
    assert drawn == all_edges()
    assert len(drawn) == len(set(drawn))


def test_every_error_is_in_the_tree() -> None:
    """The module defines the classes of both trees, and no other public name."""
    defined = [name for name, value in vars(errors).items() if getattr(value, "__module__", "") == errors.__name__]
    assert sorted(child for _, child in all_edges()) == sorted(name for name in defined if not name.startswith("_"))


def test_input_required_is_not_an_error() -> None:
    """InputRequired is not an Exception; all others are."""
    assert issubclass(InputRequired, BaseException)
    assert not issubclass(InputRequired, Exception)
    assert issubclass(AxolotlError, Exception)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(ParseError("x"), -32700, id="parse"),
        pytest.param(InvalidRequest("x"), -32600, id="request"),
        pytest.param(MethodNotFound("x"), -32601, id="method"),
        pytest.param(InvalidParams("x"), -32602, id="params"),
        pytest.param(InvalidEnvelope("x"), -32602, id="envelope"),
        pytest.param(InternalError("x"), -32603, id="internal"),
        pytest.param(ToolNotFound("x"), -32601, id="tool"),
        pytest.param(InvalidToolName("x"), -32602, id="tool-name"),
        pytest.param(PromptNotFound("x"), -32602, id="prompt"),
        pytest.param(ResourceNotFound("x://y"), -32002, id="resource"),
        pytest.param(HeaderMismatch("x"), -32020, id="header"),
        pytest.param(MissingCapability("x", {}), -32021, id="capability"),
        pytest.param(UnsupportedVersion("x", []), -32022, id="version"),
    ],
)
def test_protocol_errors_have_their_codes(error: ProtocolError, code: int) -> None:
    """Each JSON-RPC error carries the code of the protocol."""
    assert error.code == code


def test_a_missing_capability_has_the_required_one() -> None:
    """The data is an object of capabilities."""
    assert MissingCapability("x", {"sampling": {}}).data == {"requiredCapabilities": {"sampling": {}}}


def test_an_unsupported_version_lists_the_supported_ones() -> None:
    """A client can choose another version from the error alone."""
    error = UnsupportedVersion("1900-01-01", ["a", "b"])
    assert error.data == {"supported": ["a", "b"], "requested": "1900-01-01"}


def test_overloaded_has_the_retry_time() -> None:
    """The time is given in milliseconds to the caller, in seconds to the code."""
    error = Overloaded("busy", 0.25)
    assert (error.meta, error.retry_after_seconds) == (
        {"axolotl/reason": "overloaded", "axolotl/retryAfterMs": 250},
        0.25,
    )


def test_a_configuration_error_has_all_findings() -> None:
    """Several findings are one error with one line each."""
    error = ConfigurationError("one", "two")
    assert (str(error), error.findings) == ("one\ntwo", ("one", "two"))


def test_a_tool_error_carries_its_text_and_its_meta() -> None:
    """The model reads the message of a ToolError."""
    error = ToolError("no such file", meta={"a": 1})
    assert (str(error), error.message, error.meta) == ("no such file", "no such file", {"a": 1})
    assert isinstance(Forbidden("x"), ToolError)


@pytest.mark.parametrize("message", [{"code": 7}, ValueError("x"), None])
def test_a_tool_error_takes_only_text(message: Any) -> None:
    """Data in place of the text is refused where it is raised, with the parameter for it."""
    with pytest.raises(TypeError, match=r"Forbidden takes a text for the model, not .+, meta={…}\) for data"):
        Forbidden(message)
    assert not isinstance(InvalidArguments("x"), ProtocolError)


@pytest.mark.parametrize("action", ["decline", "cancel", "refuse"])
def test_declined_has_the_action(action: Literal["decline", "cancel", "refuse"]) -> None:
    """Each action has a default text for the model; the code can read the action."""
    plain, said = Declined(action), Declined(action, "Not today")
    assert (plain.action, said.action) == (action, action)
    assert (said.message, isinstance(plain, ToolError)) == ("Not today", True)
    assert plain.message != Declined("refuse" if action == "decline" else "decline").message


def test_a_resource_that_is_not_there_is_named() -> None:
    """The data has the URI, for clients that read it."""
    error = ResourceNotFound("users://5")
    assert (error.message, error.data) == ("Resource not found: users://5", {"uri": "users://5"})


@pytest.mark.parametrize("kind", [ToolNotFound, PromptNotFound])
def test_a_name_that_is_nearly_right_is_suggested(kind: type[ToolNotFound] | type[PromptNotFound]) -> None:
    """The text has the nearest name, where there is one."""
    assert str(kind("revew", "review")).endswith("not found: revew (did you mean 'review'?)")
    assert str(kind("revew")).endswith("not found: revew")
