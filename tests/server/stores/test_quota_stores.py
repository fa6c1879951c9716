"""Quota stores: the same behavior in memory and in a real Redis."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axolotl_core.policies.quota import RateLimit, WindowLimit
from tests.support.core.quota_model import SECOND, START, Limit, Paper, costs, rate_limits, window_limits
from tests.support.stores.quota_stores import Till, opened
from tests.support.stores.redis_server import RedisServer

# Redis expires keys by its own clock, not by that of the test, so limits must last longer than the test.
limits = st.one_of(rate_limits(0.01, 1 / 30, 0.7 / 60), window_limits)
steps = st.one_of(st.integers(0, 50), st.integers(0, 300 * SECOND), st.integers(0, 7200 * SECOND))


@pytest.fixture(params=["memory", "redis"])
async def till(request: pytest.FixtureRequest) -> AsyncIterator[Till]:
    server = request.getfixturevalue("redis") if request.param == "redis" else None
    async with opened(server) as store:
        yield store


def stories() -> Any:
    """Generate limits by key, and calls: a step of the clock and the amounts to take under some of the keys."""
    calls = st.tuples(steps, st.dictionaries(st.sampled_from("abc"), costs, min_size=1))
    return st.tuples(st.fixed_dictionaries(dict.fromkeys("abc", limits)), st.lists(calls, max_size=25))


async def assert_as_on_paper(till: Till, limits: dict[str, Limit], calls: list[tuple[int, dict[str, float]]]) -> None:
    paper = Paper()
    for step, taken in calls:
        till.clock.now += step
        wanted = [(key, limits[key], cost) for key, cost in taken.items()]
        refusal, against = await till.take(*wanted), paper.take(wanted, till.clock.now)
        assert (refusal is None) is (not against)
        assert refusal is None or (refusal.rule in against and refusal.retry_after_microseconds > 0)


@given(stories())
async def test_memory_matches_the_model(story: Any) -> None:
    """After any sequence of calls, memory decides like a model with exact fractions."""
    async with opened(None) as till:
        await assert_as_on_paper(till, *story)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories())
async def test_redis_matches_the_model(redis: RedisServer, story: Any) -> None:
    """After any sequence of calls, Redis decides like a model with exact fractions."""
    async with opened(redis) as till:
        await assert_as_on_paper(till, *story)


async def test_all_or_nothing(till: Till) -> None:
    """A call rejected by one rule takes nothing from the others."""
    roomy, narrow = ("roomy", WindowLimit(3, "day"), 1.0), ("narrow", WindowLimit(1, "day"), 1.0)
    assert await till.takes(roomy, narrow)
    for _ in range(5):
        assert not await till.takes(roomy, narrow)
        assert not await till.takes(narrow, roomy)
    assert [await till.takes(roomy) for _ in range(3)] == [True, True, False]


async def test_rejected_calls_take_nothing(till: Till) -> None:
    """Calls that are rejected repeatedly do not delay the next accepted call."""
    rule = ("key", RateLimit(0.01, 1.0), 1.0)
    assert await till.takes(rule)
    for _ in range(9):
        till.clock.now += 10 * SECOND
        assert not await till.takes(rule)
    till.clock.now += 10 * SECOND
    assert await till.takes(rule)


async def test_the_longest_wait_is_reported(till: Till) -> None:
    """If several rules reject a call, the one with the longest wait is reported, whatever the order."""
    minute, day = ("minute", WindowLimit(1, "minute"), 1.0), ("day", WindowLimit(1, "day"), 1.0)
    rate = ("rate", RateLimit(0.01, 1.0), 1.0)
    assert await till.takes(minute, rate, day)
    for order in ((minute, rate, day), (day, rate, minute), (rate, day, minute)):
        refusal = await till.take(*order)
        assert refusal is not None
        assert refusal.rule == "day"
        assert refusal.retry_after_microseconds == 86_400 * SECOND - START % (86_400 * SECOND)
    refusal = await till.take(minute, rate)
    assert refusal == ("rate", 100 * SECOND)


async def test_keys_are_independent(till: Till) -> None:
    """Amounts taken under one key do not count under another."""
    for key in ("a", "b", "ä" * 50, "line\nbreak", "\ud800", "{slot}", "*"):
        assert await till.takes((key, WindowLimit(1, "day"), 1.0))
        assert not await till.takes((key, WindowLimit(1, "day"), 1.0))


async def test_costs_add_up(till: Till) -> None:
    """Ten costs of a tenth add up to one, and a call with a higher cost takes more."""
    rule = WindowLimit(1, "day")
    assert [await till.takes(("key", rule, 0.1)) for _ in range(11)] == [True] * 10 + [False]
    assert [await till.takes(("other", RateLimit(0.001, 5.0), 2.0)) for _ in range(3)] == [True, True, False]


async def test_a_burst_is_whole(till: Till) -> None:
    """The full burst passes at once, whatever the rate."""
    for number, rate in enumerate([0.01, 1 / 30, 0.007, 1 / 7]):
        rule = (f"key {number}", RateLimit(rate, 7.0), 1.0)
        assert [await till.takes(rule) for _ in range(8)] == [True] * 7 + [False]


async def test_a_clock_set_back_does_not_block_callers(till: Till) -> None:
    """A bucket emptied one hour ahead refills at its usual rate, even if every call is rejected."""
    rule, day = ("key", RateLimit(0.01, 1.0), 1.0), ("day", WindowLimit(1, "day"), 1.0)
    till.clock.now = START + 400 * 86_400 * SECOND
    assert await till.takes(day)
    till.clock.now = START + 3600 * SECOND
    assert await till.takes(rule)
    till.clock.now = START
    assert not await till.takes(rule, day)
    till.clock.now += 99 * SECOND
    assert not await till.takes(rule)
    till.clock.now += SECOND
    assert await till.takes(rule, day)
    assert not await till.takes(day)


async def test_a_window_survives_a_clock_set_back(till: Till) -> None:
    """A clock set back over midnight by a second does not grant a second quota."""
    midnight, day = 20_900 * 86_400 * SECOND, ("day", WindowLimit(1, "day"), 1.0)
    till.clock.now = midnight
    assert await till.takes(day)
    till.clock.now = midnight - SECOND
    refusal = await till.take(day)
    assert refusal == ("day", 86_401 * SECOND)
