"""The commands of the deployment files, run without containers."""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION
from axolotl_server.access.api_keys import hash_key
from tests.deploy.files import ROOT, compose, compose_variables, find, stages_of, variables_of
from tests.support.processes import Processes, Server
from tests.support.stores.redis_server import RedisServer

pytestmark = pytest.mark.slow

KEY = "axk_not-a-secret-but-long-enough"
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
IMAGE = stages_of(ROOT / "Dockerfile")[-1]


@dataclass(frozen=True)
class Started:
    """The server of the compose file, on this machine."""

    process: Server
    url: str


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start the command of the compose file on the loopback address, with the variables of the image and the file."""
    with RedisServer() as redis, Processes() as processes:
        variables = {name: value for name, value in variables_of(IMAGE).items() if name.startswith("AXOLOTL_")}
        variables |= compose_variables(API_KEY_HASH=hash_key(KEY))
        variables = {name: re.sub(r"^redis://.*", redis.url, value) for name, value in variables.items()}
        variables = {name: value.replace("/var/lib/axolotl", str(tmp_path)) for name, value in variables.items()}
        here: Any = {**variables, "AXOLOTL_HTTP__HOST": "127.0.0.1", "AXOLOTL_HTTP__PORT": "0"}
        process = processes.start(*compose()["services"]["server"]["command"], **here)
        log = process.read_until("2 workers serve")
        address = re.search(r"http://127\.0\.0\.1:\d+", log)
        assert address is not None, log
        yield Started(process, address[0])


def test_the_compose_file_serves(started: Started) -> None:
    """Two workers share a session, unknown callers are rejected, the health check passes, and SIGTERM stops it."""
    with httpx2.Client(base_url=started.url, headers=HEADERS) as stranger:
        assert stranger.post("/mcp", json={}).status_code == 401
        assert stranger.get("/readyz").status_code == 200
    session: dict[str, str] = {}
    for number in range(12):  # each on a new connection, which any worker may accept
        with httpx2.Client(base_url=started.url, headers={**HEADERS, "authorization": f"Bearer {KEY}"}) as client:
            if not session:
                reply = client.post("/mcp", json=_initialize())
                session = {"mcp-session-id": reply.headers["mcp-session-id"]}
                session["mcp-protocol-version"] = LATEST_HANDSHAKE_REVISION.name
                ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                assert client.post("/mcp", json=ready, headers=session).status_code == 202
            listing = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
            reply = client.post("/mcp", json=listing, headers=session)
            assert reply.status_code == 200, reply.text
            assert reply.json()["result"]["tools"]
    with Processes() as processes:
        code, stdout, _ = processes.run("health", "--url", started.url)
    assert (code, stdout[:5]) == (0, "ready")  # on a busy machine, "ready, but degraded"
    started.process.signal(signal.SIGTERM)
    code, _, stderr = started.process.end()
    assert code == 0, stderr
    assert KEY not in stderr


def test_the_image_needs_a_target(tmp_path: Path) -> None:
    """The command of the image fails without a target, instead of serving example tools."""
    variables: Any = {name: value for name, value in variables_of(IMAGE).items() if name.startswith("AXOLOTL_")}
    with Processes() as processes:
        code, _, stderr = processes.run(*find(IMAGE, "CMD").words, directory=tmp_path, **variables)
    assert code == 2
    assert "There is no target" in stderr


def _initialize() -> dict[str, object]:
    params = {
        "protocolVersion": LATEST_HANDSHAKE_REVISION.name,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
