"""`axolotl serve --transport http`, in real processes."""

import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_cli.serving.address import address_of, listen, listening_url, listens_everywhere, url_of
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_server.settings.transports import HttpSettings
from tests.support.processes import READY, Processes, Server

SAMPLE = "tests.support.containers.command_containers:Container"


def start(processes: Processes, *words: str, **environment: Any) -> tuple[Server, str]:
    demo = () if any(":" in word for word in words) else ("--demo",)
    server = processes.start("serve", "-t", "http", "--port", "0", *demo, *words, **environment)
    return server, server.read_until(READY)


def url_in(banner: str) -> str:
    return banner.splitlines()[0].rpartition(" ")[2]


def command_in(banner: str) -> str:
    return banner[banner.index("curl ") : banner.index(READY)]


def paste(banner: str) -> httpx2.Response:
    """Send the request of the printed curl command."""
    _, url, *options = shlex.split(command_in(banner).replace("\\\n", " "))
    pairs = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ", 1) for flag, value in pairs if flag == "-H")
    [body] = [value for flag, value in pairs if flag == "-d"]
    return httpx2.post(url, headers=headers, content=body)


def call(url: str, tool: str, **arguments: Any) -> Any:
    version = LATEST_STATELESS_REVISION.name
    meta = {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: {}}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = httpx2.post(url, json=message, headers=headers, timeout=20)
    return response.json()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_hangup_is_ignored(processes: Processes) -> None:
    """SIGHUP neither ends a server with one worker nor a call: it is logged, and says what to do."""
    server, banner = start(processes)
    server.signal(signal.SIGHUP)
    assert "SIGHUP is ignored: " in server.read_until("restart this server")
    assert paste(banner).json()["result"]["content"] == [{"type": "text", "text": "hello"}]
    server.signal(signal.SIGTERM)
    assert server.end()[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_life(processes: Processes, number: signal.Signals) -> None:
    """The banner has the URL and a command to paste; a signal ends the server with 0, without a traceback."""
    server, banner = start(processes)
    assert banner.startswith("axolotl-starter serves 9 tools at http://127.0.0.1:")
    assert paste(banner).json()["result"]["content"] == [{"type": "text", "text": "hello"}]
    server.signal(number)
    code, stdout, stderr = server.end()
    assert (code, stdout) == (0, "")
    assert [line.partition("axolotl: ")[2] for line in stderr.splitlines()] == [
        f"stopping, requested by {number.name}: the server is no longer ready",
        "stopped",
    ]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(processes: Processes) -> None:
    """The command can be pasted into a shell."""
    _, banner = start(processes, SAMPLE)
    done = subprocess.run(["sh", "-c", command_in(banner)], capture_output=True, check=True)
    assert json.loads(done.stdout)["result"]["content"] == [{"type": "text", "text": "Hello, hello!"}]


def test_running_calls_are_answered(processes: Processes, pipe: Path) -> None:
    """A call that is running when the signal arrives is answered; new ones are refused meanwhile."""
    server, banner = start(processes, SAMPLE)
    url = url_in(banner)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call, url, "read", path=str(pipe))
        server.read_until("reading")
        server.signal(signal.SIGTERM)
        while "result" in (refused := call(url, "greet", name="Ann")) and not refused["result"].get("isError"):
            pass
        pipe.write_text("late", encoding="utf-8")
        assert running.result()["result"]["content"] == [{"type": "text", "text": "late"}]
    assert "shutting down" in json.dumps(refused)
    assert server.end()[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_second_signal_hastens(processes: Processes, pipe: Path) -> None:
    """After a second signal the server does not wait: the running call is answered with the reason at once."""
    server, banner = start(processes, SAMPLE, AXOLOTL_HTTP__DRAIN_SECONDS="600")
    url = url_in(banner)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call, url, "read", path=str(pipe))
        server.read_until("reading")
        server.signal(signal.SIGTERM)
        while "shutting down" not in json.dumps(call(url, "greet", name="Ann")):
            pass
        server.signal(signal.SIGTERM)
        assert "shutting down" in json.dumps(running.result()["result"])
    assert server.end()[0] == 0


def test_no_tools(processes: Processes) -> None:
    """The banner of a server without tools suggests to list them."""
    _, banner = start(processes, "tests.support.containers.command_containers:Empty")
    assert "serves 0 tools" in banner
    assert paste(banner).json()["result"]["tools"] == []


def test_only_prompts(processes: Processes) -> None:
    """The banner of a server with other features suggests to list those."""
    _, banner = start(processes, "tests.support.containers.full_container:Reading")
    assert banner.startswith("axolotl serves 1 prompt at http://127.0.0.1:")
    assert paste(banner).json()["result"]["prompts"][0]["name"] == "praise"


def test_flags_beat_environment_beats_file(processes: Processes, tmp_path: Path) -> None:
    """A flag takes precedence over the environment, which takes precedence over the file."""
    (tmp_path / "axolotl.toml").write_text('[http]\npath = "/file"\nhost = "nowhere.invalid"\n', encoding="utf-8")
    variables = {"AXOLOTL_HTTP__PATH": "/environment", "AXOLOTL_HTTP__HOST": "localhost"}
    _, banner = start(processes, "--path", "/flag", directory=tmp_path, **variables)
    url = url_in(banner)
    assert url.startswith("http://localhost:")
    assert url.endswith("/flag")
    assert paste(banner).status_code == 200


def test_taken_port(processes: Processes) -> None:
    """A port that is in use is reported on one line, and the exit code is 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, stdout, stderr = processes.run("serve", "--demo", "-t", "http", "-p", port)
    assert (code, stdout) == (2, "")
    assert stderr == f"Error: Port {port} on 127.0.0.1 is in use: choose another with --port, or 0 for a free one\n"


@pytest.mark.parametrize(
    ("host", "finding"),
    [
        pytest.param("nowhere.invalid", "The host 'nowhere.invalid' is unknown", id="unknown"),
        pytest.param("a" * 64 + ".invalid", "The host", id="impossible"),
        pytest.param("192.0.2.1", "192.0.2.1 is not an address of this machine", id="foreign"),
    ],
)
def test_wrong_host(host: str, finding: str) -> None:
    """A host that is not this machine is an error."""
    with pytest.raises(ConfigurationError, match=finding):
        listen(HttpSettings(host=host, port=0))


@pytest.mark.parametrize(
    ("host", "shown", "everywhere"),
    [("0.0.0.0", "127.0.0.1", True), ("127.0.0.1", "127.0.0.1", False), ("localhost", "localhost", False)],
)
def test_url(host: str, shown: str, everywhere: bool) -> None:
    """The URL is usable for a client, whatever address the server listens on."""
    settings = HttpSettings(host=host, port=0, path="/a b")
    with listen(settings) as listener:
        assert url_of(settings, listener) == f"http://{shown}:{listener.getsockname()[1]}/a%20b"
    assert listens_everywhere(settings) is everywhere


@pytest.mark.parametrize(
    ("host", "shown"), [("0.0.0.0", "0.0.0.0"), ("", "0.0.0.0"), ("::", "[::]"), ("localhost", "localhost")]
)
def test_listening_url(host: str, shown: str) -> None:
    """The address that is shown is the one that the server listens at, which other machines may reach."""
    settings = HttpSettings(host=host)
    assert listening_url(settings, address_of(settings, 8000) + "/mcp") == f"http://{shown}:8000/mcp"
