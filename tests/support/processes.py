"""Processes whose output tests wait for."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION
from tests.support.commands import PATIENCE_SECONDS, ROOT, ForkedCommand, environment_with

READY = "Press Ctrl-C to stop."


class Server:
    """An `axolotl` process with its three streams."""

    def __init__(
        self, words: tuple[str, ...], environment: Mapping[str, str], directory: Path, stdin: int | None = None
    ) -> None:
        self.process = ForkedCommand(*words, directory=directory, environment=_environment(environment), stdin=stdin)
        self.stdin = os.fdopen(self.process.stdin, "w", encoding="utf-8") if stdin is None else None
        self.stdout = os.fdopen(self.process.stdout, encoding="utf-8")
        self.stderr = os.fdopen(self.process.stderr, encoding="utf-8")
        self.terminal: int | None = None
        """The test's end of the terminal, if standard input is one."""
        self._watchdog = threading.Timer(PATIENCE_SECONDS, self.signal, [signal.SIGKILL])
        self._wait_anew()

    def _wait_anew(self) -> None:
        """Kill the process if it does nothing for too long; each of its lines takes the time it needs."""
        self._watchdog.cancel()
        self._watchdog = threading.Timer(PATIENCE_SECONDS, self.signal, [signal.SIGKILL])
        self._watchdog.start()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message over stdio."""
        assert self.stdin is not None
        print(json.dumps(message), file=self.stdin, flush=True)

    def hear(self) -> Any:
        """Wait for a message over stdio."""
        self._wait_anew()
        return json.loads(self.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request over stdio and wait for its reply."""
        self.say({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        return self.hear()["result"]

    def shake_hands(self) -> None:
        """Perform the handshake over stdio."""
        version = LATEST_HANDSHAKE_REVISION.name
        client = {"name": "test", "version": "1"}
        self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=client)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def type(self, text: str) -> None:
        """Type something into the terminal, also ahead of time."""
        assert self.terminal is not None
        os.write(self.terminal, text.encode())

    def read_until(self, text: str) -> str:
        """Wait for a text on standard error and return everything up to it."""
        lines: list[str] = []
        self._wait_anew()
        for line in self.stderr:
            self._wait_anew()
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError(f"{text!r} never came; instead: {''.join(lines)}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Close standard input, wait for the end, and return the exit code and the remaining output."""
        self._wait_anew()
        if self.stdin is not None:
            with suppress(BrokenPipeError):
                self.stdin.close()
        with ThreadPoolExecutor() as pool:
            stderr = pool.submit(self.stderr.read)
            stdout = self.stdout.read()
        return self.process.wait(), stdout, stderr.result()

    def close(self) -> None:
        """Kill the process."""
        self._watchdog.cancel()
        self.process.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


class Processes:
    """Starts and ends processes."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def start(self, *words: str, directory: Path = ROOT, **environment: str) -> Server:
        """Start `axolotl` with arguments."""
        server = Server(words, environment, directory)
        self._stack.callback(server.close)
        return server

    def start_in_terminal(self, *words: str) -> Server:
        """Start `axolotl` with a terminal as its standard input."""
        import pty  # not available on every platform

        ours, theirs = pty.openpty()
        server = Server(words, {}, ROOT, stdin=theirs)
        os.close(theirs)
        server.terminal = ours
        self._stack.callback(os.close, ours)
        self._stack.callback(server.close)
        return server

    def run(self, *words: str, directory: Path = ROOT, **environment: str) -> tuple[int, str, str]:
        """Run `axolotl` without input and wait for its end."""
        return self.start(*words, directory=directory, **environment).end()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *reason: object) -> None:
        self._stack.close()


def imported_modules(*words: str) -> Iterator[str]:
    """List every module that a command imports."""
    command = [sys.executable, "-X", "importtime", "-m", "axolotl_cli", *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_environment({}), cwd=ROOT, check=True
    )
    for line in done.stderr.splitlines():
        if line.startswith("import time:"):
            yield line.rpartition("|")[2].strip()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    return environment_with(PYTHONPATH=str(ROOT), **extra)
