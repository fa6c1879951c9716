"""Event stores: the same behavior in memory, in a directory and in Redis."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.stores.event_stores import Place, opened
from tests.support.stores.redis_server import RedisServer


@pytest.fixture(params=["memory", "directory", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the store is."""
    if request.param == "directory":
        return tmp_path
    redis: RedisServer | None = request.getfixturevalue("redis") if request.param == "redis" else None
    return redis


async def messages_after(store: IEventStore, stream: str, event_id: str) -> list[bytes] | None:
    events = await store.after("session", stream, event_id)
    return None if events is None else [event.message for event in events]


async def test_events_are_replayed_in_order(place: Place) -> None:
    """Events appended after an ID are returned in order, with their IDs."""
    async with opened(place) as store:
        first = await store.append("session", "a", b"1")
        second = await store.append("session", "a", b"2")
        third = await store.append("session", "a", b"3")
        assert await store.after("session", "a", first) == [StoredEvent(second, b"2"), StoredEvent(third, b"3")]
        assert await store.after("session", "a", third) == []


async def test_streams_do_not_mix(place: Place) -> None:
    """Only later events of the same stream are returned, and an ID is valid only in its own stream."""
    async with opened(place) as store:
        mine = await store.append("session", "a", b"a1")
        theirs = await store.append("session", "b", b"b1")
        await store.append("session", "a", b"a2")
        await store.append("session", "b", b"b2")
        assert await messages_after(store, "a", mine) == [b"a2"]
        assert await messages_after(store, "b", theirs) == [b"b2"]
        assert await messages_after(store, "a", theirs) is None
        assert await messages_after(store, "b", mine) is None


async def test_sessions_do_not_mix(place: Place) -> None:
    """An event ID is valid only in its own session."""
    async with opened(place) as store:
        event_id = await store.append("session", "a", b"1")
        await store.append("session", "a", b"2")
        assert await store.after("another", "a", event_id) is None
        await store.append("another", "a", b"x")
        assert await store.after("another", "a", event_id) in ([], None)


async def test_ids_are_visible_ascii_and_grow(place: Place) -> None:
    """IDs fit into a header, are unique within a stream, and increase."""
    async with opened(place) as store:
        ids = [await store.append("session", "a", b"same") for _ in range(50)]
        assert ids == [str(number) for number in sorted({int(event_id) for event_id in ids})]
        assert all(0 < len(event_id) <= 64 and event_id.isascii() and event_id.isalnum() for event_id in ids)


@pytest.mark.parametrize(
    "event_id", ["", "0", "-1", "2", "1.0", "+1", "1e3", "x", "9" * 15, "9" * 5000, "None", "1 ", "²"]
)
async def test_an_unknown_id_returns_nothing(place: Place, event_id: str) -> None:
    """An invalid or unknown ID is distinguished from an ID without later events."""
    async with opened(place) as store:
        await store.append("session", "a", b"secret")
        assert await store.after("session", "a", event_id) is None
        assert await store.after("session", "nowhere", event_id) is None


async def test_the_oldest_are_dropped(place: Place) -> None:
    """A session keeps a maximum number of events over all its streams, and replays those that are left."""
    async with opened(place, max_events=3) as store:
        ids = [await store.append("session", "a", b"%d" % number) for number in range(5)]
        assert await messages_after(store, "a", ids[0]) == [b"2", b"3", b"4"]
        assert await messages_after(store, "a", ids[3]) == [b"4"]
        for _ in range(3):
            await store.append("session", "b", b"other")
        assert await messages_after(store, "a", ids[4]) is None


async def test_bytes_are_bounded(place: Place) -> None:
    """A session keeps a maximum number of bytes, independently of other sessions."""
    async with opened(place, max_bytes=10) as store:
        other = await store.append("another", "a", b"12345678")
        first = await store.append("session", "a", b"1234")
        await store.append("session", "a", b"5678")
        await store.append("session", "a", b"90ab")
        assert await messages_after(store, "a", first) == [b"5678", b"90ab"]
        assert await store.after("another", "a", other) == []


async def test_a_message_that_is_too_large_is_not_stored(place: Place) -> None:
    """A message beyond the limit gets an ID but is not stored, and displaces no other message."""
    async with opened(place, max_bytes=10) as store:
        first = await store.append("session", "a", b"1234")
        large = await store.append("session", "a", b"x" * 11)
        last = await store.append("session", "a", b"5678")
        assert await store.after("session", "a", first) == [StoredEvent(large, b""), StoredEvent(last, b"5678")]
        assert await messages_after(store, "a", large) == [b"5678"]


async def test_a_stream_is_deleted(place: Place) -> None:
    """Deleting a stream frees its space."""
    async with opened(place, max_bytes=10) as store:
        forgotten = await store.append("session", "a", b"1234")
        kept = await store.append("session", "b", b"5678")
        await store.forget("session", "a")
        await store.forget("session", "nowhere")
        await store.forget("nobody", "a")
        assert await store.after("session", "a", forgotten) is None
        await store.append("session", "b", b"90ab")
        assert await messages_after(store, "b", kept) == [b"90ab"]


async def test_a_session_is_deleted(place: Place) -> None:
    """Deleting a session deletes all its events and nothing else."""
    async with opened(place) as store:
        mine = await store.append("session", "a", b"1")
        theirs = await store.append("another", "a", b"1")
        await store.forget("session")
        await store.forget("session")
        assert await store.after("session", "a", mine) is None
        assert await store.after("another", "a", theirs) == []


async def test_many_small_sessions_displace_no_other_caller() -> None:
    """Above the limit in memory, the caller with the most loses events, however many sessions they are in."""
    store = MemoryEventStore(100, 100_000, 150_000)
    store.count_for("small", "ada")
    ids = [await store.append("small", "a", b"x" * 10_000) for _ in range(3)]
    for number in range(40):
        store.count_for(f"session {number}", "eve")
        newest = await store.append(f"session {number}", "a", b"y" * 10_000)
        assert await store.after(f"session {number}", "a", newest) == []
    events = await store.after("small", "a", ids[0])
    assert events is not None
    assert [len(event.message) for event in events] == [10_000, 10_000]
    for session in ("small", *(f"session {number}" for number in range(40))):
        await store.forget(session)
    assert not len(store)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=6)), max_size=40),
    st.integers(1, 12),
    st.integers(1, 40),
)
async def test_any_operations_replay_a_suffix(
    place: Place, said: list[tuple[str, bytes]], max_events: int, max_bytes: int
) -> None:
    """After any operations, a replay returns the end of the events that followed on the stream."""
    async with opened(place, max_events, max_bytes) as store:
        ids = [await store.append("session", stream, message) for stream, message in said]
        for index, (stream, _) in enumerate(said):
            followed = [message for other, message in said[index + 1 :] if other == stream]
            given = await messages_after(store, stream, ids[index])
            if given is not None:
                kept = [message if len(message) <= max_bytes else b"" for message in followed]
                assert given == kept[len(kept) - len(given) :]
                assert sum(map(len, given)) <= max_bytes
                assert len(given) <= max_events


_STEPS = st.tuples(
    st.sampled_from(["append", "append", "append", "forget", "forget all", "after"]),
    st.sampled_from("ab"),
    st.integers(0, 9),
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_STEPS, max_size=30))
async def test_any_operations_have_the_same_result(place: Place, steps: list[tuple[str, str, int]]) -> None:
    """After every step, a store returns the same messages as the store in memory."""
    async with opened(None, 6, 20) as memory, opened(place, 6, 20) as store:
        ids: list[tuple[str, str]] = []
        for step, stream, number in steps:
            if step == "append":
                message = b"x" * number
                appended = [await one.append("session", stream, message) for one in (memory, store)]
                ids.append((appended[0], appended[1]))
            elif step == "after" and ids:
                one, other = ids[number % len(ids)]
                assert await messages_after(memory, stream, one) == await messages_after(store, stream, other)
            elif step == "forget":
                await memory.forget("session", stream)
                await store.forget("session", stream)
            elif step == "forget all":
                await memory.forget("session")
                await store.forget("session")
                assert [await messages_after(store, stream, event_id) for _, event_id in ids] == [None] * len(ids)
                ids.clear()  # a store may assign them again
