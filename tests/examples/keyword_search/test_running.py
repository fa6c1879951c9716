"""Running searches: progress, cancellation, timeouts and concurrency."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dependency_injector import providers

from axolotl_core import Context
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ToolCancelled
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode, notification
from axolotl_examples.keyword_search.allowed_roots import SearchRoot
from axolotl_examples.keyword_search.directory import Directory, FileReader
from axolotl_examples.keyword_search.models import KeywordQuery, SearchReport, SkipReason
from axolotl_examples.keyword_search.searcher import KeywordSearcher, SearchSettings
from axolotl_server import ServerHost, connect
from tests.examples.keyword_search.searching import Listener, Searching, container_for, plant, search_directly
from tests.support.peers.memory_transport import MemoryTransport

PATIENCE_SECONDS = 20.0


class Gate(FileReader):
    """A reader that waits at its first file until it is released, and records which files were read."""

    def __init__(self) -> None:
        super().__init__(1000)
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.read_names: list[str] = []

    def read(self, directory: Directory, name: str) -> bytes | SkipReason:
        if name != ".gitignore":
            self.read_names.append(name)
            self.reached.set()
            assert self.opened.wait(PATIENCE_SECONDS)
        return super().read(directory, name)


class WatchedSearcher(KeywordSearcher):
    """A searcher that signals its end."""

    def __init__(self, settings: SearchSettings, reader: FileReader) -> None:
        super().__init__(settings, reader)
        self.ended = threading.Event()

    def search(self, query: KeywordQuery, roots: Sequence[SearchRoot], context: Context) -> SearchReport:
        try:
            return super().search(query, roots, context)
        finally:
            self.ended.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Hold searches until they are released, at the latest when the test ends."""
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture
def gated(root: Path, gate: Gate) -> Any:
    """Create the real container with that reader and that searcher, and a tree of some files."""
    plant(root, {f"{number:03}.txt": "key" for number in range(100)})
    container = container_for(root)
    container.reader.override(providers.Object(gate))
    container.searcher.override(providers.Singleton(WatchedSearcher, container.search_settings, container.reader))
    return container


async def happens(event: threading.Event) -> None:
    """Wait for an event of another thread."""
    assert await asyncio.to_thread(event.wait, PATIENCE_SECONDS)


async def released(container: Any, gate: Gate) -> list[str]:
    """Release a search, wait for its end, and return the files that it read."""
    gate.opened.set()
    await happens(container.searcher().ended)
    return gate.read_names


def call(number: int) -> bytes:
    meta = {PROTOCOL_VERSION_KEY: LATEST_STATELESS_REVISION.name, CLIENT_CAPABILITIES_KEY: {}}
    arguments = {"keyword": "key", "root_paths": ["."]}
    params = {"name": "keyword_search", "arguments": arguments, "_meta": meta}
    return encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


async def test_progress(root: Path) -> None:
    """A caller that requests progress gets increasing numbers."""
    plant(root, {f"{number // 10}/{number}.txt": "key" for number in range(50)})
    heard: list[Mapping[str, Any]] = []
    async with connect(container_for(root, progress_seconds=0)) as client:
        await client.call("keyword_search", {"keyword": "x", "root_paths": ["."]}, on_progress=heard.append)
    numbers = [params["progress"] for params in heard]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 55
    assert heard[-1]["message"] == "55 files and directories seen"


async def test_quiet_progress(searching: Searching) -> None:
    """A short search reports no progress."""
    searching.plant({"a.txt": "key"})
    heard: list[Any] = []
    await searching.client.call("keyword_search", {"keyword": "x", "root_paths": ["."]}, on_progress=heard.append)
    assert heard == []


async def test_cancellation(gated: Any, gate: Gate) -> None:
    """A canceled search reads no more files and gets no reply."""
    async with ServerHost(gated) as host:
        transport = MemoryTransport(host.handler)
        transport.send(call(1))
        await happens(gate.reached)
        transport.send(notification("notifications/cancelled", {"requestId": 1}))
        transport.send(encode({"jsonrpc": "2.0", "id": 2, "method": "nothing"}))
        assert msgspec.json.decode(await transport.receive())["id"] == 2
        assert await released(gated, gate) == ["000.txt"]
        assert await transport.close() == []


async def test_deadline(gated: Any, gate: Gate) -> None:
    """A search that times out gets a reply in time and stops."""
    async with ServerHost(gated, flags={"tools": {"keyword_search": {"timeout_seconds": 0.05}}}) as host:
        transport = MemoryTransport(host.handler)
        transport.send(call(1))
        reply = msgspec.json.decode(await transport.receive())
        assert "did not finish within 0.05 seconds" in reply["result"]["content"][0]["text"]
        assert len(await released(gated, gate)) == 1
        await transport.close()


async def test_shutdown(gated: Any, gate: Gate) -> None:
    """A server that shuts down stops its searches."""
    async with ServerHost(gated) as host:
        transport = MemoryTransport(host.handler)
        transport.send(call(1))
        await happens(gate.reached)
        [reply] = await transport.close()
        assert b"shutting down" in reply
        assert await released(gated, gate) == ["000.txt"]


@pytest.mark.parametrize("names", [["a.txt", "b.txt"], ["a.md", "b.md"], ["a/b/c", "d/e/f"]])
def test_cancellation_between_entries(root: Path, names: list[str]) -> None:
    """A canceled search ends at the next file or directory."""
    plant(root, dict.fromkeys(names, "key"))
    steps: list[float] = []

    def cancel(progress: float) -> None:
        steps.append(progress)
        context.cancellation.cancel(CancelReason.CLIENT)

    context = Context(caller=Listener(cancel))
    with pytest.raises(ToolCancelled):
        search_directly(root, context, include=["*.txt"])
    assert steps == [1]


async def test_the_loop_is_free(gated: Any, gate: Gate) -> None:
    """During searches the server answers other calls; four searches run, more wait, and only many are rejected."""
    async with ServerHost(gated) as host:
        transport = MemoryTransport(host.handler)
        for number in range(4 + 16 + 1):
            transport.send(call(number))
        refused = msgspec.json.decode(await transport.receive())
        assert refused["id"] == 20
        assert "busy" in refused["result"]["content"][0]["text"]
        gate.opened.set()
        answered = [msgspec.json.decode(await transport.receive()) for _ in range(20)]
        assert {reply["result"]["structuredContent"]["match_count"] for reply in answered} == {100}
        await transport.close()
