"""The version of uvicorn that the adapter was written for, and the internals it relies on."""

import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

MINOR: Final = "0.54"

REVIEW: Final = f"""\
axolotl_server/http_server/uvicorn_adapter.py was written for uvicorn {MINOR}. Compare the sources of both versions:
- httptools_impl.RequestResponseCycle: does `send` of a complete response still do no more than `write_reply`?
- HttpToolsProtocol: when are `cycle` and `timeout_keep_alive_task` set, and what does `shutdown` close?
- Server: what do `startup`, `on_tick` and `shutdown` do that the adapter has to do in their place? Which arguments does
  `startup` give to `http_protocol_class`?
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
        (HttpToolsProtocol, ("cycle", "timeout_keep_alive_task", "transport", "flow", "shutdown")),
        (
            RequestResponseCycle,
            (
                "response_started", "response_complete", "disconnected", "access_log", "keep_alive", "flow",
                "default_headers", "transport", "message_event", "on_response", "more_body",
            ),
        ),
        (ServerState, ("connections", "tasks", "default_headers")),
        (uvicorn.Config, ("load",)),
    ],
)  # fmt: skip
def test_the_internals_exist(owner: type, names: tuple[str, ...]) -> None:
    """Every attribute that the adapter uses still occurs in uvicorn's source."""
    source = inspect.getsource(owner)
    assert [name for name in names if f"self.{name}" not in source and f"def {name}" not in source] == [], REVIEW
