"""The server under test, in a separate process."""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.failure import CannotRun
from tests.conformance.settings import SERVER_NAME

ROOT = Path(__file__).resolve().parents[2]
TARGET = "tests.conformance.container:Container"
_VERSION = "2026-07-28"
_PORTS = range(20_000, 32_000)
"""Below the ports for outgoing connections, so that nothing else takes the port before the server does."""
_ATTEMPTS = 100
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05
_TAIL_LINES = 40


@contextmanager
def served(log: Path) -> Iterator[str]:
    """Run the server until the block ends, and yield its URL.

    Raises CannotRun if the server does not answer or ends early.
    """
    port = free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "axolotl_cli", "serve", TARGET, "--transport", "http", "--port", str(port)],
            cwd=log.parent,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_ready(process, port, log)
        yield f"http://127.0.0.1:{port}/mcp"
        _refuse_dead(process, log)
    finally:
        _stop(process)


def free_port() -> int:
    """Return an unused port of the loopback interface, or raise CannotRun."""
    for port in random.sample(_PORTS, _ATTEMPTS):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise CannotRun("There is no free port for the server")


def tail_of(log: Path) -> str:
    """Return the last lines of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-_TAIL_LINES:])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        _refuse_dead(process, log)
        try:
            name = _ask_for_name(port)
        except (OSError, http.client.HTTPException):
            time.sleep(_POLL_SECONDS)
            continue
        if name != SERVER_NAME:
            raise CannotRun(f"Port {port} answers, but not as {SERVER_NAME}: {name}\n{tail_of(log)}")
        return
    raise CannotRun(f"The server did not answer within {_START_SECONDS:.0f} seconds:\n{tail_of(log)}")


def _refuse_dead(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is not None:
        raise CannotRun(f"The server ended with exit code {process.returncode}:\n{tail_of(log)}")


def _ask_for_name(port: int) -> Any:
    """Ask the server for its name; return any other reply unchanged."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": _VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": envelope}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": _VERSION,
        "Mcp-Method": "server/discover",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_SECONDS)
    try:
        connection.request("POST", "/mcp", json.dumps(request), headers)
        body = connection.getresponse().read()
    finally:
        connection.close()
    try:
        return json.loads(body)["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
    except (ValueError, LookupError, TypeError):
        return body


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AXOLOTL_")}
    return {**inherited, "PYTHONPATH": str(ROOT)}


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
