"""Disabled observation costs nothing: it is not imported and wraps nothing."""

import json
import subprocess
import sys
from typing import Any

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_core.layers import type_of_layer
from axolotl_server import ServerHost
from axolotl_server.features.tools import ToolMethods
from tests.support.commands import ROOT
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.slow

PLAIN = """
import asyncio, json, sys

sys.modules["fastapi"] = None  # dependency_injector imports it where it is installed, and it imports OpenTelemetry

from dependency_injector import containers, providers
from axolotl_core import tool
from axolotl_server import connect

@tool
async def add(a: int, b: int) -> int:
    return a + b

class Container(containers.DeclarativeContainer):
    settings = providers.Object(json.loads(sys.argv[1]))
    tools = providers.List(providers.Object(add))

async def main():
    async with connect(Container()) as client:
        assert (await client.call("add", {"a": 1, "b": 2})).structured == 3

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""
QUIET: dict[str, Any] = {"log_level": "info"}
LIBRARIES = ("opentelemetry", "prometheus_client", "requests")


def modules_of(settings: dict[str, Any]) -> set[str]:
    """List the modules that a process imports to serve a call with these settings."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, json.dumps(settings)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_nothing_is_imported() -> None:
    """Without observation, its libraries and modules are not imported."""
    modules = modules_of(QUIET)
    assert not [name for name in modules if name.split(".")[0] in LIBRARIES]
    assert not [
        name for name in modules if name.startswith(("axolotl_server.observation", "axolotl_server.extensions.console"))
    ]
    assert "axolotl_server.layers.call_ending" not in modules


def test_the_page_needs_no_telemetry_and_telemetry_no_page() -> None:
    """The metrics page and OpenTelemetry import only their own libraries."""
    assert not [name for name in modules_of({"metrics": {"enabled": True}}) if name.startswith("opentelemetry")]
    assert not [name for name in modules_of({"log": {"format": "json"}}) if name.split(".")[0] in LIBRARIES]


async def test_nothing_is_wrapped() -> None:
    """Methods and layers of a server without observation are not wrapped."""
    async with ServerHost(container_of(Echo())) as host:
        assert host.assembly.observation is None
        assert host.assembly.observers == ()
        for era in host.handler._eras._by_name.values():
            assert getattr(era.methods["tools/call"], "__func__", None) is ToolMethods.call
        [binding] = host.assembly.tools.bindings()
        layers = [type_of_layer(layer).__name__ for layer in binding.layers]
        assert layers == ["validation", "timeout"]


@pytest.mark.parametrize(
    ("settings", "library", "finding"),
    [
        (
            {"metrics": {"enabled": True}},
            "prometheus_client",
            r"metrics\.enabled needs the extra metrics: pip install .prometheus-client",
        ),
        (
            {"telemetry": {"traces": True}},
            "opentelemetry",
            r"telemetry needs the extra otel: pip install .opentel",
        ),
        (
            {"telemetry": {"metrics": True}},
            "opentelemetry",
            r"telemetry needs the extra otel: pip install .opentel",
        ),
    ],
)
async def test_what_is_missing_is_named(
    settings: dict[str, Any], library: str, finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a library is missing, the server does not start, and the error names the package."""
    loaded = [name for name in sys.modules if name.split(".")[0] == library]
    ours = [f"axolotl_server.observation.{name}" for name in ("prometheus", "providers", "spans", "exporters")]
    for name in (*loaded, *ours):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigurationError, match=finding):
        await ServerHost(container_of(Echo()), flags=settings).start()
