"""`axolotl serve` over stdio, in real processes."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.commands import ROOT, constants
from tests.support.processes import READY, Processes

SAMPLE = "tests.support.containers.command_containers:Container"


def test_session(processes: Processes) -> None:
    """A client performs the handshake, lists and calls; when it disconnects, the server ends with 0."""
    server = processes.start("serve", "--demo")
    server.shake_hands()
    assert server.ask("tools/list")["tools"][0]["name"] == "echo"
    answer = server.ask("tools/call", name="echo", arguments={"text": "hello"})
    assert answer["content"] == [{"type": "text", "text": "hello"}]
    assert server.end() == (0, "", "")


def test_noise(processes: Processes) -> None:
    """Nothing that user code writes to stdout reaches the client."""
    server = processes.start("serve", "tests.support.containers.noisy_container")
    server.shake_hands()
    answer = server.ask("tools/call", name="shout", arguments={"text": "hello"})
    assert answer["content"] == [{"type": "text", "text": "HELLO"}]
    code, stdout, stderr = server.end()
    assert (code, stdout) == (0, "")
    assert stderr.count("noise from print") == stderr.count("noise from a child") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals(processes: Processes, number: signal.Signals) -> None:
    """A termination signal ends the server with 0 and without a traceback, although the client is connected."""
    server = processes.start("serve", SAMPLE)
    server.shake_hands()
    server.signal(number)
    assert server.process.wait() == 0
    assert server.end()[1:] == ("", "")


def test_running_calls_are_answered(processes: Processes, pipe: Path) -> None:
    """A call that is running when the signal arrives is answered, and the log says what the server waits for."""
    server = processes.start("serve", SAMPLE)
    server.shake_hands()
    params = {"name": "read", "arguments": {"path": str(pipe)}}
    server.say({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    server.read_until("reading")
    server.signal(signal.SIGTERM)
    server.read_until("stopping, requested by SIGTERM; running calls: 1, which get at most 5 seconds")
    pipe.write_text("late", encoding="utf-8")
    assert server.hear()["result"]["content"] == [{"type": "text", "text": "late"}]
    assert server.end() == (0, "", "")


def test_stuck_thread(processes: Processes, pipe: Path) -> None:
    """A tool that never ends does not keep the server from ending."""
    server = processes.start("serve", SAMPLE, **constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": 0}))
    server.shake_hands()
    params = {"name": "read", "arguments": {"path": str(pipe)}}
    server.say({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    server.read_until("reading")
    code, stdout, stderr = server.end()
    assert code == 0
    assert "shutting down" in stdout
    assert "did not end" in stderr


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
def test_terminal(processes: Processes) -> None:
    """A person at a terminal gets a hint, and Ctrl-C ends the server at once."""
    server = processes.start_in_terminal("serve", SAMPLE)
    assert server.read_until(READY).startswith("sample serves 6 tools over stdio and is waiting for a client.")
    server.signal(signal.SIGINT)
    assert server.end() == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
def test_terminal_counts_everything(processes: Processes) -> None:
    """The hint counts prompts and resources too."""
    server = processes.start_in_terminal("serve", "tests.support.containers.full_container:Container")
    hint = "restaurant serves 5 tools, 3 prompts, 2 resources and 1 template over stdio and is waiting for a client."
    assert server.read_until(READY).startswith(hint)
    server.signal(signal.SIGINT)
    assert server.end()[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="the shell")
def test_closed_input() -> None:
    """If stdin is closed, the error says so."""
    command = f"{shlex.quote(sys.executable)} -m axolotl_cli serve <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr == "Error: stdin is closed, but the stdio transport needs it: open it, or use --transport http\n"


def test_wrong_target(processes: Processes) -> None:
    """A server that cannot start reports the reason on stderr, and writes nothing to stdout."""
    code, stdout, stderr = processes.run("serve", "absent_module")
    assert (code, stdout) == (2, "")
    assert stderr.startswith("Error: Module 'absent_module' not found")
    assert len(stderr.splitlines()) == 1


def test_toolset(processes: Processes) -> None:
    """Only the selected tool sets are served."""
    server = processes.start("serve", "tests.support.containers.command_containers:Sets", "--toolset", "numeric")
    server.shake_hands()
    assert [tool["name"] for tool in server.ask("tools/list")["tools"]] == ["double"]


def test_log_level(processes: Processes) -> None:
    """The flag takes precedence over the environment."""
    server = processes.start("serve", SAMPLE, "-l", "ERROR", AXOLOTL_LOG_LEVEL="critical")
    assert server.end()[0] == 0


def test_address_without_http(cli: CommandLine) -> None:
    """Options for an address are refused over stdio."""
    answer = cli("serve", "--port", "8000")
    assert answer.code == 2
    assert "--transport http" in answer.stderr
