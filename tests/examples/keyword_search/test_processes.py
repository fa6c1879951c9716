"""`axolotl serve axolotl_examples.keyword_search:Container`, in real processes."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from tests.examples.keyword_search.searching import lines_of, plant
from tests.support.processes import READY, Processes

TARGET = "axolotl_examples.keyword_search:Container"
ARGUMENTS = {"keyword": "key", "root_paths": ["."]}


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Processes that end with the test."""
    with Processes() as started:
        yield started


def test_stdio(processes: Processes, root: Path) -> None:
    """Over stdio, the working directory of the process is searched, and no process is left over."""
    plant(root, {"a/b.txt": "one\nkey\n"})
    server = processes.start("serve", TARGET, directory=root)
    server.shake_hands()
    answer = server.ask("tools/call", name="keyword_search", arguments=ARGUMENTS)
    assert lines_of(answer["structuredContent"]) == [("a/b.txt", 2, "key")]
    assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
    outside = server.ask("tools/call", name="keyword_search", arguments={**ARGUMENTS, "root_paths": [".."]})
    assert outside["isError"] is True
    assert psutil.Process(server.process.pid).children() == []
    assert server.end() == (0, "", "")


def test_http(processes: Processes, root: Path) -> None:
    """Over HTTP, the environment sets the allowed directories, and a request for progress gets a stream."""
    plant(root, {"a.txt": "key", "b.txt": "other"})
    server = processes.start(
        *("serve", TARGET, "--transport", "http", "--port", "0"),
        KEYWORD_SEARCH_ALLOWED_ROOTS=json.dumps([str(root)]),
        KEYWORD_SEARCH_PROGRESS_SECONDS="0",
    )
    url = server.read_until(READY).splitlines()[0].rpartition(" ")[2]
    *progress, answer = post(url, progressToken="p")
    assert [message["params"]["progress"] for message in progress] == [1, 2]
    assert lines_of(answer["result"]["structuredContent"]) == [("a.txt", 1, "key")]
    assert post(url) == [answer]
    server.signal(signal.SIGTERM)
    assert server.end()[0] == 0


def post(url: str, **meta: Any) -> list[Any]:
    """Call the tool; the reply is a single message or a stream that ends with it."""
    version = LATEST_STATELESS_REVISION.name
    meta = {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: {}, **meta}
    params = {"name": "keyword_search", "arguments": ARGUMENTS, "_meta": meta}
    response = httpx2.post(
        url,
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": version,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "keyword_search",
        },
    )
    if response.headers["content-type"].startswith("application/json"):
        return [response.json()]
    return [json.loads(line[5:]) for line in response.text.splitlines() if line.startswith("data:")]
