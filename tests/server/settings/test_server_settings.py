"""Server settings: sections, defaults and limits."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from axolotl_server.settings.calls import ToolOverrides, ToolsSettings
from axolotl_server.settings.server import ServerSettings

IMPORT_AND_WATCH = """
import sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
import axolotl_server.__init__
import axolotl_server.settings.__init__
import axolotl_server.settings.server
for path in opened:
    if path.endswith(".toml") or ("axolotl" in path and path.endswith("METADATA")):
        sys.exit(f"read {path}")
"""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings from the environment."""
    for name in list(os.environ):
        if name.upper().startswith("AXOLOTL_"):
            monkeypatch.delenv(name)


def test_every_setting_has_a_default() -> None:
    """A server starts without any settings."""
    settings = ServerSettings()
    assert (settings.http.host, settings.http.port, settings.http.path) == ("127.0.0.1", 8000, "/mcp")
    assert not settings.tools.coerce_arguments
    assert (settings.server.name, settings.log_level) == ("axolotl", "info")


def test_the_version_of_the_server_is_that_of_the_distribution() -> None:
    """The version of a server defaults to that of the distribution."""
    assert ServerSettings().server.version


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        pytest.param(None, "log_level", "debug", id="root"),
        pytest.param("http", "port", 1, id="section"),
        pytest.param("tools", "coerce_arguments", True, id="tools"),
        pytest.param("tools", "echo", ToolOverrides(), id="override"),
        pytest.param("server", "name", "x", id="identity"),
    ],
)
def test_settings_are_frozen(section: str | None, key: str, value: Any) -> None:
    """Settings cannot be changed after they are read."""
    settings = ServerSettings()
    target: BaseModel = settings if section is None else getattr(settings, section)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(target, key, value)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        pytest.param("http", "port", 65536, id="port-too-large"),
        pytest.param("http", "port", -1, id="port-negative"),
        pytest.param("http", "path", "mcp", id="path-without-slash"),
        pytest.param("http", "request_timeout_seconds", 0, id="timeout-zero"),
        pytest.param("http", "drain_seconds", -1, id="drain-negative"),
        pytest.param("sessions", "maximum", 0, id="no-sessions"),
        pytest.param("limits", "timeout_seconds", 0, id="no-time"),
        pytest.param("limits", "max_inflight", 0, id="no-calls"),
        pytest.param("limits", "max_message_bytes", -5, id="negative-size"),
        pytest.param("limits", "threads", 0, id="no-threads"),
        pytest.param("protocol", "unknown_tool", "maybe", id="unknown-choice"),
        pytest.param("tools", "echo", {"timeout_seconds": 0}, id="override-without-time"),
        pytest.param("tools", "echo", {"max_concurrency": 0}, id="override-without-calls"),
        pytest.param("tools", "echo", {"queue_limit": -1}, id="override-negative"),
        pytest.param("tools", "echo", {"color": "red"}, id="override-unknown"),
        pytest.param("http", "prot", 1, id="unknown"),
    ],
)
def test_values_out_of_range_are_rejected(section: str, key: str, value: Any) -> None:
    """A value out of range is an error when settings are read."""
    with pytest.raises(ValidationError):
        ServerSettings.model_validate({section: {key: value}})


@pytest.mark.parametrize("asked", ["Echo", "echo", "ECHO"])
def test_tool_overrides_ignore_case(asked: str) -> None:
    """Overrides of a tool apply regardless of the case of its name."""
    settings = ToolsSettings.model_validate({"eCHO": {"timeout_seconds": 2}, "strasse": {"enabled": False}})
    assert settings.overrides_for(asked) == ToolOverrides(timeout_seconds=2)
    assert not settings.overrides_for("straße").enabled


def test_other_tools_have_no_overrides() -> None:
    """A tool without overrides uses its own values and the defaults."""
    assert ToolsSettings().overrides_for("echo") == ToolOverrides()
    assert ToolsSettings().overrides == {}


def test_settings_for_all_tools_are_not_a_tool() -> None:
    """The keys of the section itself are not treated as tool names."""
    settings = ToolsSettings.model_validate({"coerce_arguments": True, "echo": {"enabled": False}})
    assert list(settings.overrides) == ["echo"]


def test_importing_reads_neither_environment_nor_files(tmp_path: Path) -> None:
    """An import does not read settings and cannot fail because of them."""
    (tmp_path / "axolotl.toml").write_text("this is = = no toml", encoding="utf-8")
    environment = {**os.environ, "AXOLOTL_HTTP__PORT": "nonsense", "AXOLOTL_LOG_LEVEL": "loud", "AXOLOTL_LIMITS": "{"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_AND_WATCH],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
