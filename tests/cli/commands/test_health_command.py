"""`axolotl health` with real server processes."""

import json
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any

import pytest

from tests.cli.conftest import CommandLine
from tests.support.commands import constants
from tests.support.processes import READY, Processes, Server, imported_modules
from tests.support.servers.serving import PATIENCE_SECONDS

TARGET = "tests.support.containers.shutdown_tools:container"


def start(processes: Processes, **environment: Any) -> tuple[Server, str]:
    """Serve over HTTP, and return the server and its URL; a busy machine must not make it degraded."""
    environment |= constants({"axolotl_server.host.STALL_SECONDS": 60, "axolotl_server.health._CACHE_SECONDS": 0})
    server = processes.start("serve", TARGET, "-t", "http", "--port", "0", **environment)
    return server, server.read_until(READY).splitlines()[0].rpartition(" ")[2].removesuffix("/mcp")


def test_a_server_that_is_ready(processes: Processes, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 0, whether the server, its route or the settings name the address."""
    _, url = start(processes)
    port = url.rpartition(":")[2]
    for words in (["--url", url], ["--url", f"{url}/"], ["--url", f"{url}/health"]):
        answer = cli("health", *words)
        assert (answer.code, answer.stdout, answer.stderr) == (0, "ready\n", "")
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", port)
    monkeypatch.setenv("AXOLOTL_HTTP__HOST", "0.0.0.0")
    assert cli("health").code == 0


def test_json(processes: Processes, cli: CommandLine) -> None:
    """The JSON has the health report, and whether the server is ready."""
    _, url = start(processes)
    report = json.loads(cli("health", "--url", url, "--json").stdout)
    assert (report["ready"], report["url"], report["status"]) == (True, f"{url}/readyz", "ok")
    assert report["checks"]["switch"] == {"status": "ok"}


def test_a_server_that_is_not_ready(processes: Processes, cli: CommandLine, tmp_path: Path) -> None:
    """The exit code is 1, and failed checks are named, with the reason if the server gives one."""
    switch = tmp_path / "off"
    settings = {"TEST_SWITCH": str(switch)}
    _, url = start(processes, **settings)
    _, open_url = start(processes, AXOLOTL_HEALTH__DETAILS="true", **settings)
    switch.touch()
    answer = cli("health", "--url", url)
    assert (answer.code, answer.stdout) == (1, "not ready\n  switch failed\n")
    answer = cli("health", "--url", open_url)
    assert (answer.code, answer.stdout) == (1, "not ready\n  switch failed: switched off\n")
    report = json.loads(cli("health", "--url", url, "--json").stdout)
    assert (report["ready"], report["status"]) == (False, "failed")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_server_that_stops(processes: Processes, cli: CommandLine) -> None:
    """A server that is stopping is not ready, and then does not answer."""
    server, url = start(processes, AXOLOTL_HTTP__DRAIN_DELAY_SECONDS="60")
    server.signal(signal.SIGTERM)
    server.read_until("calls are still accepted")
    answer = cli("health", "--url", url)
    assert (answer.code, answer.stdout) == (1, "not ready\n  serving failed\n")
    server.signal(signal.SIGTERM)
    server.end()
    answer = cli("health", "--url", url)
    assert answer.code == 3
    assert answer.stderr.startswith(f"Error: No health report from {url}/readyz: ")


def test_no_server(cli: CommandLine) -> None:
    """Without a server the exit code is 3, also with `--json`."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        answer = cli("health", "--url", url, "--timeout", "0.1")
        assert (answer.code, answer.stdout) == (3, "")
        assert answer.stderr == f"Error: No health report from {url}/readyz: no answer within 0.1 seconds\n"
    answer = cli("health", "--url", url, "--json")
    report = json.loads(answer.stdout)
    assert (answer.code, report["ready"], report["url"]) == (3, False, f"{url}/readyz")
    assert report["error"] == "connection refused; start the server, or name another address with --url"


class Stranger(BaseHTTPRequestHandler):
    """A server of another kind."""

    content = b"<html>\x1b[2J</html>"

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def stranger() -> Iterator[str]:
    """Its URL."""
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_control_sequences_are_not_sent_to_the_terminal(
    cli: CommandLine, stranger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report can contain any text in its status, and in the names, states and reasons of its checks."""
    hostile = "\x1b[2J\u202e"
    report = {"status": hostile, "checks": {hostile: {"status": hostile, "reason": hostile}}}
    monkeypatch.setattr(Stranger, "content", json.dumps(report).encode())
    answer = cli("health", "--url", stranger)
    shown = r"\x1b[2J\u202e"
    assert answer.stdout == f"ready, but {shown}\n  {shown} {shown}: {shown}\n"


def test_no_health_report(cli: CommandLine, stranger: str) -> None:
    """A response that is not a health report is an error."""
    answer = cli("health", "--url", stranger)
    assert answer.code == 3
    assert "the status is 200; are the health routes enabled?" in answer.stderr


class Trickling(BaseRequestHandler):
    """A server that sends a part of a response, then a byte at a time until its client has left."""

    begin = b""

    def handle(self) -> None:
        with suppress(OSError):
            request = self.request.recv(65536)
            if request.startswith(b"GET"):
                self.request.sendall(self.begin)
            while not self.server.left.wait(0.01):  # type: ignore[attr-defined]
                self.request.sendall(b"x")
        self.server.left.set()  # type: ignore[attr-defined]


@contextmanager
def trickling(begin: bytes) -> Iterator[tuple[str, Event]]:
    """Serve, and give the URL and the event that the client has left."""
    with ThreadingTCPServer(("127.0.0.1", 0), type("Handler", (Trickling,), {"begin": begin})) as server:
        server.left = left = Event()  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", left
        finally:
            left.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ],
)
def test_a_server_that_sends_a_byte_at_a_time(cli: CommandLine, begin: bytes) -> None:
    """The whole check has one deadline, however slowly the response arrives; then the connection is closed."""
    with trickling(begin) as (url, left):
        answer = cli("health", "--url", url, "--timeout", "0.2")
        assert left.wait(PATIENCE_SECONDS)
    assert answer.code == 3
    assert answer.stderr == f"Error: No health report from {url}/readyz: no answer within 0.2 seconds\n"


def test_a_name_that_is_not_resolved(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline includes the search for the address, which cannot be interrupted."""
    found = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found.wait(PATIENCE_SECONDS) and [])
    answer = cli("health", "--url", "http://server.example", "--timeout", "0.2")
    is_too_late = found.is_set()
    found.set()
    assert (answer.code, is_too_late) == (3, False)
    assert "no answer within 0.2 seconds" in answer.stderr


def test_a_large_reply(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, stranger: str) -> None:
    """No more of a reply is read than a health report can have."""
    monkeypatch.setattr(Stranger, "content", b"[" * 70_000)
    answer = cli("health", "--url", stranger)
    assert answer.code == 3
    assert "the reply has more than 65536 bytes; are the health routes enabled?" in answer.stderr


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", "http://host:port"])
def test_wrong_urls(cli: CommandLine, url: str) -> None:
    """Invalid URLs are refused."""
    assert cli("health", "--url", url).code == 2


def test_settings_without_an_address(cli: CommandLine) -> None:
    """If the settings have no address, the error says what to do."""
    cli.write("axolotl.toml", "[http]\nport = 0\n")
    answer = cli("health")
    assert answer.code == 2
    assert "name the server with --url" in answer.stderr
    cli.write("axolotl.toml", "[health]\nenabled = false\n")
    answer = cli("health")
    assert answer.code == 2
    assert "name another route with --url" in answer.stderr


def test_it_starts_quickly(processes: Processes) -> None:
    """With a URL, no module of the server is imported."""
    _, url = start(processes)
    modules = set(imported_modules("health", "--url", url))
    heavy = {"axolotl_core", "axolotl_server", "dependency_injector", "uvicorn"}
    assert not {name.partition(".")[0] for name in modules} & heavy
