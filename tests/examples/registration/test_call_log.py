"""The call log."""

import asyncio
import logging

import pytest
from dependency_injector import providers

from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION
from axolotl_examples.registration import Container
from axolotl_examples.registration.call_log import LoggedCall, LoggingCallLog
from tests.examples.registration.call_logs import ListCallLog
from tests.examples.registration.dialogue import in_memory


def test_line(caplog: pytest.LogCaptureFixture) -> None:
    """Each call writes a line to the logger."""
    caplog.set_level("INFO", "calls")
    LoggingCallLog(logging.getLogger("calls")).write(LoggedCall("echo", "ada", "answered", 0.0015))
    assert caplog.messages == ["echo by ada: answered after 1.5 ms"]


@pytest.mark.parametrize("reason", ["timeout", "client"])
async def test_stopped_call(reason: str) -> None:
    """A stopped call is logged with the reason."""
    log, begun = ListCallLog(), asyncio.Event()

    async def pause(seconds: float) -> None:
        begun.set()
        await asyncio.Event().wait()

    container = Container()
    container.call_log.override(providers.Object(log))
    container.pause.override(providers.Object(pause))
    seconds = 0.01 if reason == "timeout" else 60
    limits = {"tools": {"delayed_echo": {"timeout_seconds": seconds}}}
    async with in_memory(container, LATEST_HANDSHAKE_REVISION, limits) as client:
        arguments = {"text": "later", "seconds": 1}
        await client.send("tools/call", {"name": "delayed_echo", "arguments": arguments}, id="slow")
        await begun.wait()
        if reason == "client":
            await client.send("notifications/cancelled", {"requestId": "slow"})
            await client.ask("ping")
        else:
            await client.hear()
    [call] = log.calls
    assert call.outcome == f"stopped ({reason})"
    assert call.seconds >= 0
