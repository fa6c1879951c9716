"""The configuration of clients starts a server that answers, and the call to try works."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.pages import EXAMPLES, Block, blocks
from tests.docs.running import RunningServer

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "docs", "version": "1"}},
}


def _entries(block: Block) -> Mapping[str, Mapping[str, Any]]:
    document = json.loads(block.text)
    entries: Mapping[str, Mapping[str, Any]] = document.get("mcpServers") or document.get("servers") or {}
    return entries


STARTED = [
    pytest.param(entry, id=f"{block.place}-{name}")
    for block in blocks("json")
    for name, entry in _entries(block).items()
    if "command" in entry
]
REACHED = [
    pytest.param(entry, id=f"{block.place}-{name}")
    for block in blocks("json")
    for name, entry in _entries(block).items()
    if "url" in entry
]


@pytest.mark.parametrize("entry", STARTED)
def test_command(entry: Mapping[str, Any]) -> None:
    """The command answers `initialize` on its standard output and ends with its input."""
    places = {"/path/to/venv/bin": str(Path(sys.executable).parent), "/path/to/project": str(EXAMPLES)}
    words = [entry["command"], *entry["args"]]
    for shown, real in places.items():
        words = [word.replace(shown, real) for word in words]
    request = f"{json.dumps(_INITIALIZE)}\n".encode()
    done = subprocess.run(words, input=request, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("entry", REACHED)
def test_url(entry: Mapping[str, Any]) -> None:
    """The URL is the one that the server has by default."""
    assert entry["url"] == "http://127.0.0.1:8000/mcp"


def test_call_to_try() -> None:
    """The command that the server prints is answered as the first page says."""
    reply = next(block for block in blocks("json") if block.page == "README.md" and '"jsonrpc"' in block.text)
    with RunningServer("axolotl serve --transport http") as server:
        words = shlex.split(server.invitation.partition("Try it:")[2].partition("Press")[0].replace("\\\n", " "))
        headers = dict(words[index + 1].split(": ", 1) for index, word in enumerate(words) if word == "-H")
        answer = httpx.post(server.url, headers=headers, content=words[words.index("-d") + 1])
    assert answer.status_code == 200
    assert _without_version(answer.json()) == _without_version(json.loads(reply.text))


def _without_version(message: Any) -> str:
    return re.sub(r'"version": "[^"]*"', '"version": "…"', json.dumps(message))
