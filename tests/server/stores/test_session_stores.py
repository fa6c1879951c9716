"""Session stores: the same behavior in a directory and in Redis."""

import asyncio
from itertools import count, cycle
from pathlib import Path

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axolotl_core.sessions import KnownSession, SessionChange, hide_session_id
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.peers.session_client import Client
from tests.support.peers.wire import call
from tests.support.servers.serving import serving, until
from tests.support.stores.session_stores import RECORD, Place
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.slow

_names = count()


@pytest.fixture(params=["directory", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place."""
    return Place(tmp_path if request.param == "directory" else request.getfixturevalue("redis"))


async def test_a_session_is_found_by_the_others(place: Place) -> None:
    """A process finds the full session of another process, even after that has exited, but no state it already has."""
    async with place.process() as other:
        async with place.process() as one:
            assert await one.store.begin("s", RECORD)
        assert await other.store.find("s", 0) == KnownSession(1, RECORD)
        assert await other.store.find("s", 1) == KnownSession(1, None)
        assert await other.store.find("another", 0) is None


async def test_changes_are_seen_at_once(place: Place) -> None:
    """After a change, every process finds the new state with a new version."""
    async with place.two() as (one, other):
        await one.begin("s", RECORD)
        assert await one.change("s", SessionChange(initialized=True, log_level="error")) == 2
        both = SessionChange(subscribed=frozenset({"a://1", "a://2"}), notification_stream="n")
        assert await other.change("s", both) == 3
        assert await one.change("s", SessionChange(unsubscribed=frozenset({"a://1"}))) == 4
        expected = msgspec.structs.replace(
            RECORD, initialized=True, log_level="error", notification_stream="n", subscriptions=frozenset({"a://2"})
        )
        assert await other.find("s", 1) == KnownSession(4, expected)


async def test_an_end_is_seen_at_once(place: Place) -> None:
    """An ended session can no longer be found, changed or held, and leaves no data."""
    async with place.two() as (one, other):
        await one.begin("s", RECORD)
        await one.begin("another", RECORD)
        await other.find("s", 0)
        await other.end("s")
        assert await one.find("s", 1) is None
        assert await one.change("s", SessionChange(initialized=True)) is None
        assert await one.hold(["s", "another"]) == {"another"}
        assert not await one.send("s", b"anybody?")
        assert await one.find("s", 0) is None


async def test_the_maximum_counts_all_processes(place: Place) -> None:
    """The maximum counts the sessions of all processes, and an ended session frees its place."""
    async with place.two(maximum=2) as (one, other):
        assert [await one.begin("a", RECORD), await other.begin("b", RECORD)] == [True, True]
        assert not await one.begin("c", RECORD)
        assert await one.find("c", 0) is None
        await one.end("b")
        assert await other.begin("c", RECORD)


async def test_the_maximum_of_one_principal_counts_all_processes(place: Place) -> None:
    """The maximum of one principal counts its sessions in all processes, until they end or are idle for too long."""
    greedy, quiet = (msgspec.structs.replace(RECORD, share=share) for share in ("greedy", "quiet"))
    async with place.two(maximum_per_principal=2, idle_seconds=600.0) as (one, other):
        assert [await one.begin("a", greedy), await other.begin("b", greedy)] == [True, True]
        assert not await one.begin("c", greedy)
        assert [await one.begin(name, quiet) for name in ("d", "e")] == [True, True]
        assert await one.begin("f", RECORD)
        await other.end("a")
        assert await one.begin("c", greedy)
        assert await other.find("c", 0) == KnownSession(1, greedy)
        for _ in range(2):  # sessions in use count, however old they are
            await place.pass_time(400.0)
            assert await one.hold(["b", "c"]) == {"b", "c"}
            assert not await one.begin("g", greedy)
        await place.pass_time(700.0)
        assert [await one.begin("g", greedy), await one.begin("h", greedy)] == [True, True]


async def test_idle_sessions_end(place: Place) -> None:
    """A session lives as long as it is found or held at intervals, and frees its place when it ends."""
    async with place.two(maximum=1, idle_seconds=600.0) as (one, other):
        await one.begin("s", RECORD)
        for _ in range(2):
            await place.pass_time(400.0)
            assert await other.find("s", 1) == KnownSession(1, None)
            await place.pass_time(400.0)
            assert await one.hold(["s", "another"]) == {"s"}
            assert not await one.begin("another", RECORD)
        await place.pass_time(700.0)
        assert await one.hold(["s"]) == frozenset()
        assert await one.find("s", 0) is None
        assert await one.begin("another", RECORD)


async def test_expired_sessions_are_reported_once(place: Place) -> None:
    """One process learns which sessions have expired, even if it never had them; ended ones are not among them."""
    limits = {"maximum": 2, "idle_seconds": 600.0}
    async with place.process(**limits) as one:
        assert [await one.store.begin("idle", RECORD), await one.store.begin("ended", RECORD)] == [True, True]
        await one.store.end("ended")
        await one.store.begin("used", RECORD)
        await place.pass_time(500.0)
        await one.store.hold(["used"])
    await place.pass_time(500.0)
    async with place.process(**limits) as one, place.process(**limits) as other:
        assert await one.store.begin("new", RECORD)
        assert [await store.hold([]) for store in (one.store, other.store)] == [frozenset()] * 2
        assert one.expired + other.expired == [hide_session_id("idle")]
        await place.pass_time(700.0)
        assert await other.store.hold(["used"]) == frozenset()
        assert {*one.expired, *other.expired} == {hide_session_id(name) for name in ("idle", "used", "new")}
        assert len(one.expired + other.expired) == 3


async def test_events_in_a_store_of_the_container_expire(place: Place, http: httpx2.AsyncClient) -> None:
    """`forget` of an event store is called when a session expires, even if no process has the session any more."""
    settings = place.settings
    settings["sessions"] = {**settings.get("sessions", {}), "resumable": "replies"}
    store = MemoryEventStore(100, 100_000)
    async with serving(container_of(Echo()), settings, event_store=store) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(call("echo", {"text": "x"}, handshake=True)) as stream:
            await stream.rest()
        [name] = store._sessions
        assert name == hide_session_id(client.headers["Mcp-Session-Id"])
    await place.pass_time(1000.0)
    async with serving(container_of(Echo()), settings, event_store=store) as server:
        server.app.sessions._sweep()
        await until(lambda: not store._sessions)


async def test_changes_at_the_same_time(place: Place) -> None:
    """Of changes that several processes make at the same time, none is lost."""
    async with place.process() as one, place.process() as other:
        await one.store.begin("s", RECORD)
        changes = [SessionChange(subscribed=frozenset({f"notes://{number}"})) for number in range(20)]
        stores = cycle([one.store, other.store])
        versions = await asyncio.gather(*(next(stores).change("s", change) for change in changes))
        found = await one.store.find("s", 0)
    assert sorted(version or 0 for version in versions) == [*range(2, 22)]
    assert found is not None
    assert found.record is not None
    assert len(found.record.subscriptions) == 20


async def test_messages_reach_the_other_holders(place: Place) -> None:
    """A message reaches every other process that holds the session, but not its sender."""
    async with place.process() as one, place.process() as other, place.process() as stranger:
        await one.store.begin("s", RECORD)
        assert not await one.store.send("s", b"alone")
        await other.store.find("s", 0)
        assert await one.store.send("s", b"\x00\xff to the other")
        assert await other.store.send("s", b"to the one")
        await stranger.store.broadcast(b"to all")
        assert [await one.hear(), await one.hear()] == [b"to the one", b"to all"]
        assert [await other.hear(), await other.hear()] == [b"\x00\xff to the other", b"to all"]
        assert stranger.heard.empty()


async def test_many_messages(place: Place) -> None:
    """A burst, which is larger than the buffer of a socket, arrives completely."""
    async with place.process() as one, place.process() as other:
        await one.store.begin("s", RECORD)
        await other.store.find("s", 0)
        sending = asyncio.gather(*(one.store.send("s", b"%d" % number) for number in range(20)))
        assert {await other.hear() for _ in range(20)} == {b"%d" % number for number in range(20)}
        await sending


_CHANGES = st.builds(
    SessionChange,
    initialized=st.none() | st.booleans(),
    log_level=st.none() | st.sampled_from(["debug", "error"]),
    notification_stream=st.none() | st.sampled_from(["x", "y"]),
    subscribed=st.frozensets(st.text(max_size=5), max_size=3),
    unsubscribed=st.frozensets(st.text(max_size=5), max_size=3),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), _CHANGES), max_size=8))
async def test_any_changes(place: Place, changes: list[tuple[bool, SessionChange]]) -> None:
    """After any changes by two processes, both find the combined state."""
    async with place.two(maximum=10_000) as (one, other):
        name = f"session {next(_names)}"
        await one.begin(name, RECORD)
        expected = RECORD
        for mine, change in changes:
            await (one if mine else other).change(name, change)
            expected = msgspec.structs.replace(
                expected,
                initialized=expected.initialized if change.initialized is None else change.initialized,
                log_level=change.log_level or expected.log_level,
                notification_stream=change.notification_stream or expected.notification_stream,
                subscriptions=(expected.subscriptions | change.subscribed) - change.unsubscribed,
            )
        found = KnownSession(1 + len(changes), expected)
        assert await one.find(name, 0) == await other.find(name, 0) == found
