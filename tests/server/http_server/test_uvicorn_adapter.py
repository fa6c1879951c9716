"""The version of uvicorn that the adapter was written for, and the internals it relies on."""

import inspect
from importlib.metadata import requires, version
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
- Server: the order of `startup`, `main_loop` and `shutdown`, and where `on_tick` and `capture_signals` are called.
- Server.startup: which arguments does it give to `http_protocol_class`?
- Config.encoded_headers and ServerState.default_headers: are these the headers of every response?
Then run tests/server/http_server and tests/faults, and change MINOR here and the requirement in pyproject.toml."""


def test_the_version_is_the_reviewed_one() -> None:
    """The installed minor version is the one that the adapter was reviewed for."""
    assert version("uvicorn").startswith(f"{MINOR}."), REVIEW


def test_the_requirement_is_pinned() -> None:
    """The package requires exactly that minor version."""
    [requirement] = [one for one in requires("axolotl-mcp") or () if one.startswith("uvicorn")]
    assert requirement.replace(" ", "").replace("uvicorn", "") in (f"<0.55,>={MINOR}", f">={MINOR},<0.55"), REVIEW


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
        (uvicorn.Server, ("server_state", "servers", "lifespan", "config", "on_tick", "main_loop", "startup")),
        (uvicorn.Config, ("encoded_headers", "http_protocol_class", "ssl")),
    ],
)  # fmt: skip
def test_the_internals_exist(owner: type, names: tuple[str, ...]) -> None:
    """Every attribute that the adapter uses still occurs in uvicorn's source."""
    source = inspect.getsource(owner)
    assert [name for name in names if f"self.{name}" not in source and f"def {name}" not in source] == [], REVIEW
