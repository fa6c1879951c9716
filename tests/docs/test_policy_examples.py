"""The examples of layers, audit records and per-call resources."""

import asyncio
import importlib
import logging
import threading
from typing import Any

import pytest

from axolotl_core import tool
from axolotl_server import connect
from tests.support.docs.pages import blocks
from tests.support.servers.serving import until
from tests.support.tools import container_of


def load(name: str) -> Any:
    """Import an example."""
    return importlib.import_module(name)


def is_played(script: str) -> bool:
    """Return whether a page shows the output of a script, which test_console.py checks."""
    return any(f"$ python {script}.py\n" in block.text for block in blocks("console"))


def test_audited() -> None:
    """A page shows the audit records of three calls."""
    assert is_played("audited")


def test_own_sink() -> None:
    """A page shows the records of a custom sink."""
    assert is_played("own_sink")


async def test_own_layers(caplog: pytest.LogCaptureFixture) -> None:
    """The outer layer sees a result, an error, a question and a rejection."""
    caplog.set_level(logging.INFO, "acme.calls")
    container = load("own_layers").Container()
    async with connect(container, answer=lambda question: {"name": "brass"}) as client:
        assert (await client.call("draw", {"part": "bolt"})).text == "a bolt"
        assert (await client.call("draw", {"part": ""})).is_error
        assert (await client.call("draw", {"part": "nut"})).text == "nut of brass"
        assert container.licenses().free == 2
        container.licenses().free = 0
        refused = await client.call("draw", {"part": "bolt"})
    assert refused.meta["axolotl/retryAfterMs"] == 5000
    ends = ["done", "returned an error", "asked the user", "done", "refused"]
    assert caplog.messages == [f"draw: {end}" for end in ends]


async def test_own_layers_and_a_thread() -> None:
    """A license is held while a thread works, even after its caller was answered."""
    gate = threading.Event()

    @tool(tags=frozenset({"cad"}), timeout_seconds=0.05)
    def render() -> None:
        gate.wait(10)

    layer = load("own_layers").LicenseLayer(1)
    try:
        async with connect(container_of(render, layers=[layer])) as client:
            assert (await client.call("render")).meta["axolotl/reason"] == "timeout"
            assert layer.free == 0
            gate.set()
            await until(lambda: layer.free == 1)
    finally:
        gate.set()


async def test_own_layers_and_code_that_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """An abandoned call is recorded once, before its caller is answered."""
    caplog.set_level(logging.INFO, "acme.calls")
    ended = asyncio.Event()

    @tool(timeout_seconds=0.05)
    async def cling() -> None:
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError:
                continue

    async with connect(container_of(cling, layers=[load("own_layers").OutcomeLayer()])) as client:
        assert (await client.call("cling")).is_error
        assert _of_calls(caplog) == ["cling: abandoned (timeout)"]
        ended.set()
    assert _of_calls(caplog) == ["cling: abandoned (timeout)"]


def _of_calls(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "acme.calls"]
