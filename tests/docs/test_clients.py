"""The client configurations on the pages start a server that answers."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_examples.starter import Container
from axolotl_server import HttpApp, ServerHost
from axolotl_server.settings.transports import HttpSettings
from tests.support.docs.pages import EXAMPLES, Block, blocks
from tests.support.docs.running import environment

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


ENTRIES = [entry for block in blocks("json") for entry in _entries(block).values()]
COMMANDS = {(entry["command"], *entry["args"]) for entry in ENTRIES if "command" in entry}
URLS = {entry["url"] for entry in ENTRIES if "url" in entry}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command(command: tuple[str, ...]) -> None:
    """The command answers `initialize` and ends when its input is closed."""
    places = {"/path/to/venv/bin": str(Path(sys.executable).parent), "/path/to/project": str(EXAMPLES)}
    words = list(command)
    for shown, real in places.items():
        words = [word.replace(shown, real) for word in words]
    request = f"{json.dumps(_INITIALIZE)}\n".encode()
    done = subprocess.run(words, input=request, capture_output=True, timeout=30, check=False, env=environment())
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"


def test_url() -> None:
    """The URL is the default one."""
    http = HttpSettings()
    assert {f"http://{http.host}:{http.port}{http.path}"} == URLS


async def test_call_to_try() -> None:
    """The call that a server suggests when it starts is answered as a page shows."""
    page = "docs/operate/transports.md"
    shown = next(block.text for block in blocks("console") if block.page == page and "curl" in block.text)
    reply = next(block for block in blocks("json") if block.page == page and '"jsonrpc"' in block.text)
    words = shlex.split(shown.partition("Try it:")[2].partition("Press")[0].replace("\\\n", " "))
    headers = dict(words[index + 1].split(": ", 1) for index, word in enumerate(words) if word == "-H")
    async with ServerHost(Container()) as host:
        transport = httpx2.ASGITransport(HttpApp(host.handler, host.settings))
        async with httpx2.AsyncClient(transport=transport) as client:
            answer = await client.post(words[1], headers=headers, content=words[words.index("-d") + 1])
    assert answer.status_code == 200
    assert _without_version(answer.json()) == _without_version(json.loads(reply.text))


def _without_version(message: Any) -> str:
    return re.sub(r'"version": "[^"]*"', '"version": "…"', json.dumps(message))
