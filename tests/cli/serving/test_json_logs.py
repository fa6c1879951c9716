"""JSON logs of server processes: every line is an object, and stdout stays clean."""

import json
import signal
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes import Processes

SECRET = "swordfish-7c1f"
TOOLS = """
import logging
import sys
import warnings

from dependency_injector import containers, providers

from axolotl_core import tool

log = logging.getLogger("acme")


@tool
async def speak(word: str) -> str:
    log.warning("one\\ntwo\\x1b[2J\\u2028three")
    warnings.warn("it is\\nlate", stacklevel=1)
    return word


@tool
async def fail(word: str) -> str:
    raise LookupError


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(speak), providers.Object(fail))
"""
JSON: dict[str, Any] = {"AXOLOTL_LOG__FORMAT": "json"}


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    return str(tmp_path / "tools.py")


def lines(text: str) -> list[dict[str, Any]]:
    """Parse every line; a line that is not an object fails the test."""
    return [dict(json.loads(line)) for line in text.splitlines()]


def test_over_stdio(processes: Processes, target: str) -> None:
    """Messages, warnings and failures are one object per line on stderr; stdout has the protocol only."""
    server = processes.start("serve", target, **JSON, PYTHONWARNINGS="always")
    server.shake_hands()
    server.ask("tools/call", name="speak", arguments={"word": SECRET})
    for _ in range(3):
        server.ask("tools/call", name="fail", arguments={"word": SECRET})
    code, stdout, stderr = server.end()
    assert (code, stdout) == (0, "")
    log = lines(stderr)
    assert [line["message"] for line in log if line["logger"] == "acme"] == ["one\ntwo\x1b[2J\u2028three"]
    assert [line["name"] for line in log if line["logger"] == "acme"] == ["speak"]
    assert any("it is\nlate" in line["message"] for line in log if line["logger"] == "py.warnings")
    failures = [line for line in log if line.get("name") == "fail"]
    assert ["exception" in line for line in failures] == [True, False, False]
    assert len({line["reference"] for line in failures}) == 3
    assert SECRET not in stderr


def test_over_http(processes: Processes, target: str) -> None:
    """The URL is logged as JSON, and nothing that clients send is logged."""
    server = processes.start("serve", target, "--transport", "http", "--port", "0", **JSON)
    ready = lines(server.read_until("serves 2 tools at"))[-1]
    url = ready["message"].rpartition(" ")[2]
    assert (ready["level"], ready["logger"]) == ("info", "axolotl")
    headers = {"Authorization": f"Bearer {SECRET}", "Cookie": SECRET, "X-Api-Key": SECRET}
    httpx2.post(url, content=SECRET, headers={**headers, "Content-Type": "application/json"})
    httpx2.get(f"{url}/{SECRET}", headers=headers)
    _say_nonsense(url)
    server.signal(signal.SIGTERM)
    code, stdout, stderr = server.end()
    assert (code, stdout) == (0, "")
    assert {line["logger"] for line in lines(stderr)} == {"axolotl"}
    assert lines(stderr)[-1]["message"] == "stopped"
    assert SECRET not in stderr


def test_commands_speak_to_people(processes: Processes, target: str) -> None:
    """A command that is not a server logs text."""
    code, _, stderr = processes.run("call", target, "speak", "word=a", **JSON)
    assert code == 0
    assert r"acme: one\ntwo\x1b[2J\u2028three" in stderr


def _say_nonsense(url: str) -> None:
    address = httpx2.URL(url)
    assert address.port is not None
    with socket.create_connection((address.host, address.port)) as connection:
        connection.sendall(b"NONSENSE\r\n\r\n")
        connection.recv(1024)
