"""The quota store in memory: its capacity and the entries that it drops."""

from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.policies.quota import RateLimit, WindowLimit
from axolotl_server.stores.quotas import MemoryQuotaStore
from tests.support.core.quota_model import SECOND, costs, rate_limits, window_limits
from tests.support.stores.quota_stores import Clock, Till

DAY = WindowLimit(5, "day")
QUICK = RateLimit(10.0, 5.0)


def till_of(max_entries: int) -> tuple[Till, MemoryQuotaStore]:
    clock = Clock()
    store = MemoryQuotaStore(max_entries, clock)
    return Till(store, clock), store


async def test_memory_is_bounded() -> None:
    """With any number of keys, the store keeps at most its maximum number of entries."""
    till, store = till_of(500)
    for number in range(10_000):
        assert await till.takes((f"principal {number}", DAY, 1.0), (f"rate {number}", QUICK, 1.0))
        assert len(store) <= 500
    assert len(store) == len(store._ends) == 500


async def test_full_buckets_are_dropped_first() -> None:
    """Entries of idle principals are dropped before those still being counted."""
    till, _ = till_of(1000)
    for _ in range(5):
        assert await till.takes(("busy", DAY, 1.0))
    for number in range(900):
        assert await till.takes((f"crowd {number}", QUICK, 1.0))
    till.clock.now += SECOND
    for number in range(5000):
        till.clock.now += 100
        assert await till.takes((f"late {number}", QUICK, 1.0))
    assert not await till.takes(("busy", DAY, 1.0))


async def test_the_heaviest_user_is_kept() -> None:
    """When the store is full, new principals do not displace one that has used up its limit."""
    till, store = till_of(100)
    for _ in range(5):
        assert await till.takes(("greedy", QUICK, 1.0))
    assert not await till.takes(("greedy", QUICK, 1.0))
    for number in range(1000):
        assert await till.takes((f"crowd {number}", QUICK, 1.0))
    assert len(store) == 100
    assert not await till.takes(("greedy", QUICK, 1.0))


async def test_idle_entries_are_dropped() -> None:
    """Entries of principals that do not return are dropped."""
    till, store = till_of(10_000)
    for number in range(1000):
        assert await till.takes((f"crowd {number}", QUICK, 1.0))
    assert len(store) == 1000
    till.clock.now += SECOND
    for number in range(100):
        assert await till.takes((f"late {number}", DAY, 1.0))
    assert len(store) == 100


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.one_of(rate_limits(0.5, 3.0, 50.0), window_limits), min_size=6),
    st.lists(st.tuples(st.integers(0, 100 * SECOND), st.sampled_from("abcdef"), costs), max_size=50),
)
async def test_dropping_full_buckets_changes_nothing(
    limits: dict[str, RateLimit | WindowLimit], calls: list[tuple[int, str, float]]
) -> None:
    """A store that drops full buckets decides like a store that keeps everything."""
    (tidy, _), (hoarding, hoard) = till_of(1000), till_of(1000)
    hoard._make_room = lambda now: None  # type: ignore[method-assign]
    for step, key, cost in calls:
        tidy.clock.now = hoarding.clock.now = tidy.clock.now + step
        assert await tidy.take((key, limits[key], cost)) == await hoarding.take((key, limits[key], cost))


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, SECOND), st.sampled_from("abcdefgh"), costs), max_size=60))
async def test_every_entry_is_tracked_once(max_entries: int, calls: list[tuple[int, str, float]]) -> None:
    """With any capacity, every stored key can be dropped again."""
    till, store = till_of(max_entries)
    for step, key, cost in calls:
        till.clock.now += step
        await till.take((key, RateLimit(2.0, 20.0), cost), (f"{key} daily", WindowLimit(20, "day"), cost))
        assert len(store) <= max_entries
        assert sorted(key for _, key, _ in store._ends) == sorted(store._states)
