"""The server in a separate process, over both transports."""

import re
from typing import Any

import httpx2

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from tests.examples.three_good_sources.desk import Desk
from tests.support.processes import READY, Processes

TARGET = "axolotl_examples.three_good_sources:Container"


def test_stdio(processes: Processes) -> None:
    """A client that starts the server over stdio gets its sources."""
    server = processes.start("serve", TARGET)
    server.shake_hands()
    assert len(server.ask("tools/list")["tools"]) == 4
    answer = server.ask("tools/call", name="get_sources", arguments={"query": "set up a bitcoin node"})
    [block] = answer["content"]
    assert block["text"].startswith("Category: Bitcoin Node Setup\nSlug: bitcoin-node-setup\n")
    assert server.end() == (0, "", "")


def test_http(processes: Processes) -> None:
    """A client over HTTP gets its sources, or an error if nothing matches."""
    server = processes.start("serve", TARGET, "--transport", "http", "--port", "0")
    found = re.search(r"http://\S+/mcp", server.read_until(READY))
    assert found is not None
    assert "Category: Email Self-Hosting" in text_of(call(found[0], query="self-host email"))
    assert call(found[0], query="quantum physics")["isError"] is True


def test_tampered_registry(processes: Processes, desk: Desk) -> None:
    """A server with a modified registry does not start, and reports the reason in one line."""
    desk.write(lambda document: document["curator"].update(name="Eve"))
    code, stdout, stderr = processes.run(
        "serve",
        TARGET,
        THREE_GOOD_SOURCES_REGISTRY_FILE=str(desk.registry),
        THREE_GOOD_SOURCES_PUBLIC_KEY_FILE=str(desk.public_key),
    )
    assert (code, stdout) == (2, "")
    assert stderr.startswith("Error: registry.json: the signature is invalid")
    assert len(stderr.splitlines()) == 1


def call(url: str, **arguments: Any) -> Any:
    """Call get_sources in revision 2026-07-28."""
    version = LATEST_STATELESS_REVISION.name
    meta = {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: {}}
    params = {"name": "get_sources", "arguments": arguments, "_meta": meta}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "get_sources",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx2.post(url, json=message, headers=headers, timeout=20).json()["result"]


def text_of(result: Any) -> str:
    """Return the text of a result."""
    return str(result["content"][0]["text"])
