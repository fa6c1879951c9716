"""`axolotl` commands in separate processes, forked from one that has already imported the package."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 30.0
"""The timeout for events that must happen."""


def environment_with(**extra: str) -> dict[str, str]:
    """Return the environment of the tests without Axolotl settings, plus the given variables."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("AXOLOTL_")}, **extra}


CONSTANTS = "TEST_CONSTANTS"
"""The variable with other values of constants, as JSON, for a command."""


def constants(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the environment in which constants such as `package.module.NAME` have other values."""
    return {CONSTANTS: json.dumps(values)}


class ForkedCommand:
    """A command, with the pipes of its standard streams.

    A stream with a given descriptor has no pipe, and its end here is -1. The creator must call `kill` in the end.
    """

    def __init__(
        self,
        *words: str,
        directory: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        theirs_in, self.stdin = os.pipe() if stdin is None else (os.dup(stdin), -1)
        self.stdout, theirs_out = os.pipe() if stdout is None else (-1, os.dup(stdout))
        self.stderr, theirs_err = os.pipe() if stderr is None else (-1, os.dup(stderr))
        self.report, theirs_report = os.pipe()
        descriptors = [theirs_in, theirs_out, theirs_err, theirs_report]
        own = environment_with() if environment is None else dict(environment)
        _order({"words": words, "directory": str(directory), "environment": own}, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._reported = b""
        self.pid = int(self._read_line())
        self.returncode: int | None = None

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            if b"\n" not in self._reported and not select.select([self.report], [], [], seconds)[0]:
                raise TimeoutError(f"process {self.pid} does not end")
            self.returncode = int(self._read_line())
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, or None while it is running."""
        with suppress(TimeoutError):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the command and wait for its end."""
        self.send_signal(signal.SIGKILL)
        self.wait()
        os.close(self.report)

    def _read_line(self) -> bytes:
        while b"\n" not in self._reported:
            data = os.read(self.report, 64)
            assert data, "the process that commands are forked from has ended"
            self._reported += data
        line, _, self._reported = self._reported.partition(b"\n")
        return line


class _Zygote:
    """The process from which all commands are forked, started with the first command."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None

    def order(self, what: object, descriptors: list[int]) -> None:
        if self._control is None:
            self._start()
        assert self._control is not None
        data = json.dumps(what).encode()
        socket.send_fds(self._control, [len(data).to_bytes(4)], descriptors)
        self._control.sendall(data)

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.zygote", str(theirs.fileno())],
                cwd=ROOT,
                env=environment_with(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._close, process, self._control)

    def _close(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        control.close()
        process.wait(PATIENCE_SECONDS)


_order = _Zygote().order
