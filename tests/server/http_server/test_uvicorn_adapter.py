"""The version of uvicorn that the adapter was written for, and the internals it relies on."""

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from axolotl_server.http.server.http_requests import HttpRequest

MINOR: Final = "0.54"

REVIEW: Final = f"""\
axolotl_server/http/server was written for uvicorn {MINOR}. Compare the sources of both versions:
- HttpToolsProtocol: HttpProtocol replaces all callbacks of the parser, `data_received` and `on_response_complete`. What
  do they do now that the replacements do not do? What do `__init__`, `connection_made`, `connection_lost` and
  `shutdown` do, which are still used?
- RequestResponseCycle: which attributes do `send` and `receive` use? HttpRequest has a default for each. Does `send`
  of a complete response still do no more than `write_reply`?
- Server: what do `startup`, `on_tick` and `shutdown` do that UvicornServer has to do in their place?
- ServerState.default_headers: are these the headers of every response?
Then run tests/server/http_server and tests/faults, and change MINOR here and the requirement in pyproject.toml."""


def test_the_version_is_the_reviewed_one() -> None:
    """The installed minor version is the one that the adapter was reviewed for."""
    assert version("uvicorn").startswith(f"{MINOR}."), REVIEW


def test_the_requirement_is_pinned() -> None:
    """The package requires exactly that minor version."""
    project = Path(__file__).parents[3] / "pyproject.toml"
    requirements = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    assert f"uvicorn>={MINOR},<0.55" in requirements, REVIEW


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (
            HttpToolsProtocol,
            (
                "cycle", "transport", "flow", "shutdown", "parser", "pipeline", "tasks", "headers", "url", "client",
                "_start_asgi_task", "on_message_begin", "on_header", "on_headers_complete", "on_body",
                "on_message_complete", "on_response_complete",
            ),
        ),
        (
            RequestResponseCycle,
            (
                "response_started", "response_complete", "disconnected", "access_log", "keep_alive", "flow", "body",
                "default_headers", "transport", "message_event", "on_response", "more_body", "scope", "logger",
                "waiting_for_100_continue", "chunked_encoding", "expected_content_length", "run_asgi",
            ),
        ),
        (ServerState, ("connections", "tasks", "default_headers", "total_requests")),
        (FlowControl, ("read_paused", "write_paused", "pause_reading", "resume_reading")),
        (uvicorn.Config, ("load",)),
    ],
)  # fmt: skip
def test_the_internals_exist(owner: type, names: tuple[str, ...]) -> None:
    """Every attribute that the adapter uses still occurs in uvicorn's source."""
    source = inspect.getsource(owner)
    assert [name for name in names if f"self.{name}" not in source and f"def {name}" not in source] == [], REVIEW


def test_every_attribute_of_a_request_has_a_default() -> None:
    """A request has all attributes that uvicorn gives to its requests."""
    initializer = inspect.getsource(RequestResponseCycle.__init__)
    attributes = set(re.findall(r"self\.(\w+)(?::[^=]+)? = ", initializer)) - {"access_logger"}
    assert attributes
    assert {name for name in attributes if not hasattr(HttpRequest, name)} == set(), REVIEW
