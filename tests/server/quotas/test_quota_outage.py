"""A store of quotas that is away: what happens to calls, what is logged, and how it comes back."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from axolotl_core import Refused
from axolotl_core.policies.quota import Claim, IQuotaStore, QuotaRefusal, QuotaStoreError, WindowLimit
from axolotl_server.quotas import OutageTolerantStore
from tests.support.core.quota_model import claims_of

CLAIMS = claims_of([("key", WindowLimit(1, "day"), 1.0)])
GRANTED, REFUSED = None, QuotaRefusal("key", 1)
AWAY = QuotaStoreError("Redis at redis://somewhere: gone")


class Moody(IQuotaStore):
    """Does what its mood says: grants, refuses, fails or waits."""

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
    """A guard, the store behind it, and a clock of seconds."""

    def __init__(self, on_failure: Literal["open", "closed"], timeout_seconds: float = 20.0) -> None:
        self.now = 1000.0
        self.store = Moody()
        self.guard = OutageTolerantStore(
            self.store, on_failure, timeout_seconds=timeout_seconds, retry_seconds=1.0, clock=lambda: self.now
        )

    async def take(self) -> Any:
        return await self.guard.take(CLAIMS)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Give what was logged since this was last asked."""
    messages = [record.getMessage() for record in caplog.records if record.name == "axolotl"]
    caplog.clear()
    return messages


async def test_open_lets_calls_pass() -> None:
    """While the store is away, calls pass unchecked where that is wanted."""
    outage = Outage("open")
    outage.store.mood = REFUSED
    assert await outage.take() is REFUSED
    outage.store.mood = AWAY
    assert await outage.take() is GRANTED


async def test_closed_refuses_calls() -> None:
    """While the store is away, calls are refused where that is wanted, and told to come back."""
    outage = Outage("closed")
    assert await outage.take() is GRANTED
    outage.store.mood = AWAY
    with pytest.raises(Refused, match="cannot be checked now") as failure:
        await outage.take()
    assert failure.value.meta == {"reason": "quota_unavailable", "retryAfterMs": 1000}


async def test_a_store_that_failed_is_left_alone_for_a_while() -> None:
    """The absence of a store costs calls no time: between two tries it is not asked."""
    outage = Outage("open")
    outage.store.mood = AWAY
    for _ in range(10):
        assert await outage.take() is GRANTED
    assert outage.store.asked == 1
    outage.now += 1.0
    for _ in range(10):
        assert await outage.take() is GRANTED
    assert outage.store.asked == 2


async def test_it_comes_back_by_itself() -> None:
    """The first call after the pause finds out that the store is there again, and from then on all are counted."""
    outage = Outage("closed")
    outage.store.mood = AWAY
    with pytest.raises(Refused):
        await outage.take()
    outage.store.mood = REFUSED
    with pytest.raises(Refused):
        await outage.take()
    outage.now += 1.0
    assert [await outage.take() for _ in range(3)] == [REFUSED] * 3


async def test_one_call_tries_for_all() -> None:
    """While one call waits for a store that may be back, the others do not wait."""
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


async def test_a_try_that_is_cancelled_is_made_again() -> None:
    """The caller that tried may leave; another tries after the pause."""
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


async def test_a_store_that_hangs_counts_as_away(caplog: pytest.LogCaptureFixture) -> None:
    """A store that does not answer in time is away, whatever kind of store it is."""
    outage = Outage("open", timeout_seconds=0.01)
    outage.store.mood = asyncio.Event()
    assert await outage.take() is GRANTED
    assert told(caplog) == ["The quota store is unavailable (no answer in time); calls let through unchecked: 1"]


async def test_it_is_logged_once_in_a_while_with_the_count(caplog: pytest.LogCaptureFixture) -> None:
    """The log says at once that the store is away, then how many calls that concerned, and that it is back."""
    outage = Outage("open")
    outage.store.mood = AWAY
    for _ in range(100):
        await outage.take()
    away = "The quota store is unavailable (Redis at redis://somewhere: gone); calls let through unchecked: "
    assert told(caplog) == [f"{away}1"]
    outage.now += 9.0
    await outage.take()
    assert told(caplog) == []
    outage.now += 1.0
    await outage.take()
    await outage.take()
    assert told(caplog) == [f"{away}101"]
    outage.store.mood = GRANTED
    outage.now += 1.0
    await outage.take()
    await outage.take()
    assert told(caplog) == ["The quota store is available again; calls let through unchecked in the meantime: 1"]
    assert all(record.levelno >= logging.WARNING for record in caplog.records)


async def test_a_store_that_comes_and_goes_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """However often a store fails and recovers, there are two lines in ten seconds at most."""
    outage = Outage("closed")
    for _ in range(100):
        outage.store.mood = AWAY
        with pytest.raises(Refused):
            await outage.take()
        outage.store.mood = GRANTED
        outage.now += 1.0
        await outage.take()
    assert len(told(caplog)) <= 2 * 11


async def test_a_bug_in_a_store_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    """What no store should raise is treated as an outage, and logged with its traceback."""
    outage = Outage("open")
    outage.store.mood = ZeroDivisionError("bug")
    assert await outage.take() is GRANTED
    [record] = caplog.records
    assert record.getMessage() == "The quota store is unavailable (ZeroDivisionError); calls let through unchecked: 1"
    assert record.exc_info is not None
    assert record.exc_info[1] is outage.store.mood


async def test_closing_the_guard_closes_the_store() -> None:
    """Whoever guards a store lets go of it."""
    outage = Outage("open")
    await outage.guard.close()
    assert outage.store.closed
