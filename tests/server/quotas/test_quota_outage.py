"""Outages of a quota store: calls, logs and recovery."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from axolotl_core import Refused
from axolotl_core.policies.quota import Claim, IQuotaStore, QuotaRefusal, QuotaStoreError, WindowLimit
from axolotl_server.access.quotas import OutageTolerantStore
from tests.support.core.quota_model import claims_of

CLAIMS = claims_of([("key", WindowLimit(1, "day"), 1.0)])
GRANTED, REFUSED = None, QuotaRefusal("key", 1)
AWAY = QuotaStoreError("Redis at redis://somewhere: gone")


class ScriptedStore(IQuotaStore):
    """A store that grants, rejects, fails or waits, depending on `mood`."""

    def __init__(self) -> None:
        self.mood: QuotaRefusal | Exception | asyncio.Event | None = GRANTED
        self.asked = 0
        self.closed = False

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        self.asked += 1
        if isinstance(self.mood, asyncio.Event):
            await self.mood.wait()
        if isinstance(self.mood, Exception):
            raise self.mood
        return REFUSED if self.mood is REFUSED else GRANTED

    async def close(self) -> None:
        self.closed = True


class Outage:
    """An outage-tolerant store, the store that it wraps, and a clock."""

    def __init__(self, on_failure: Literal["open", "closed"], timeout_seconds: float = 20.0) -> None:
        self.now = 1000.0
        self.store = ScriptedStore()
        self.guard = OutageTolerantStore(
            self.store, on_failure, timeout_seconds=timeout_seconds, retry_seconds=1.0, clock=lambda: self.now
        )

    async def take(self) -> Any:
        return await self.guard.take(CLAIMS)


def new_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages logged since the last call."""
    messages = [record.getMessage() for record in caplog.records if record.name == "axolotl"]
    caplog.clear()
    return messages


async def test_open_accepts_calls() -> None:
    """With `on_failure = "open"`, calls are not limited during an outage."""
    outage = Outage("open")
    outage.store.mood = REFUSED
    assert await outage.take() is REFUSED
    outage.store.mood = AWAY
    assert await outage.take() is GRANTED


async def test_closed_rejects_calls() -> None:
    """With `on_failure = "closed"`, calls are rejected during an outage, with a time to retry."""
    outage = Outage("closed")
    assert await outage.take() is GRANTED
    outage.store.mood = AWAY
    with pytest.raises(Refused, match="cannot be checked now") as failure:
        await outage.take()
    assert failure.value.meta == {"axolotl/reason": "quota_unavailable", "axolotl/retryAfterMs": 1000}


async def test_a_failed_store_is_not_called_for_a_while() -> None:
    """An outage does not delay calls: between two attempts the store is not called."""
    outage = Outage("open")
    outage.store.mood = AWAY
    for _ in range(10):
        assert await outage.take() is GRANTED
    assert outage.store.asked == 1
    outage.now += 1.0
    for _ in range(10):
        assert await outage.take() is GRANTED
    assert outage.store.asked == 2


async def test_it_recovers() -> None:
    """The first call after the pause finds the store available, and calls are counted again."""
    outage = Outage("closed")
    outage.store.mood = AWAY
    with pytest.raises(Refused):
        await outage.take()
    outage.store.mood = REFUSED
    with pytest.raises(Refused):
        await outage.take()
    outage.now += 1.0
    assert [await outage.take() for _ in range(3)] == [REFUSED] * 3


async def test_one_call_tries_the_store() -> None:
    """While one call tries the store, the others do not wait."""
    outage = Outage("open")
    outage.store.mood = AWAY
    await outage.take()
    outage.now += 1.0
    back = outage.store.mood = asyncio.Event()
    trying = asyncio.ensure_future(outage.take())
    await asyncio.sleep(0)
    assert [await outage.take() for _ in range(5)] == [GRANTED] * 5
    assert outage.store.asked == 2
    back.set()
    assert await trying is GRANTED
    await outage.take()
    assert outage.store.asked == 3


async def test_a_cancelled_attempt_is_repeated() -> None:
    """If the call that tries the store is cancelled, another call tries after the pause."""
    outage = Outage("open")
    outage.store.mood = AWAY
    await outage.take()
    outage.now += 1.0
    outage.store.mood = asyncio.Event()
    trying = asyncio.ensure_future(outage.take())
    await asyncio.sleep(0)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    outage.store.mood = REFUSED
    outage.now += 1.0
    assert await outage.take() is REFUSED


async def test_a_hanging_store_is_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    """Any store that does not answer in time counts as unavailable."""
    outage = Outage("open", timeout_seconds=0.01)
    outage.store.mood = asyncio.Event()
    assert await outage.take() is GRANTED
    assert new_messages(caplog) == [
        "The quota store is unavailable (no answer in time); calls let through unchecked: 1"
    ]


async def test_an_outage_is_logged_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    """The log reports the outage at once, then the number of affected calls, and the recovery."""
    outage = Outage("open")
    outage.store.mood = AWAY
    for _ in range(100):
        await outage.take()
    away = "The quota store is unavailable (Redis at redis://somewhere: gone); calls let through unchecked: "
    assert new_messages(caplog) == [f"{away}1"]
    outage.now += 9.0
    await outage.take()
    assert new_messages(caplog) == []
    outage.now += 1.0
    await outage.take()
    await outage.take()
    assert new_messages(caplog) == [f"{away}101"]
    outage.store.mood = GRANTED
    outage.now += 1.0
    await outage.take()
    await outage.take()
    assert new_messages(caplog) == [
        "The quota store is available again; calls let through unchecked in the meantime: 1"
    ]
    assert all(record.levelno >= logging.WARNING for record in caplog.records)


async def test_an_unstable_store_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A store that fails and recovers repeatedly logs at most two lines in ten seconds."""
    outage = Outage("closed")
    for _ in range(100):
        outage.store.mood = AWAY
        with pytest.raises(Refused):
            await outage.take()
        outage.store.mood = GRANTED
        outage.now += 1.0
        await outage.take()
    assert len(new_messages(caplog)) <= 2 * 11


async def test_unexpected_errors_are_logged_with_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception counts as an outage and is logged with its traceback."""
    outage = Outage("open")
    outage.store.mood = ZeroDivisionError("bug")
    assert await outage.take() is GRANTED
    [record] = caplog.records
    assert record.getMessage() == "The quota store is unavailable (ZeroDivisionError); calls let through unchecked: 1"
    assert record.exc_info is not None
    assert record.exc_info[1] is outage.store.mood


async def test_closing_closes_the_store() -> None:
    """Closing the wrapper closes the store."""
    outage = Outage("open")
    await outage.guard.close()
    assert outage.store.closed
