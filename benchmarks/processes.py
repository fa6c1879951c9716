"""Starting and stopping the measured processes."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from benchmarks.errors import BenchmarkError

_ROOT = Path(__file__).resolve().parent.parent
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_POLL_SECONDS = 0.02
_QUOTED_CHARACTERS = 400

Process = subprocess.Popen[bytes]


@contextmanager
def started(
    arguments: Sequence[str], *, pipes: bool = False, environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Run a command, with raw pipes for standard input and output if requested."""
    variables = {**os.environ, **(environment or {})}
    wire = subprocess.PIPE if pipes else subprocess.DEVNULL
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(arguments), cwd=_ROOT, env=variables, stdin=wire, stdout=wire, stderr=errors, bufsize=0
        )
        try:
            yield process
        except BenchmarkError as error:
            raise BenchmarkError(f"{error}{_quoted(errors)}") from error
        finally:
            _stop(process)


@contextmanager
def listening(arguments: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[Process]:
    """Run a server and wait until its port accepts connections.

    Raises BenchmarkError if the server ends or does not listen in time.
    """
    with started(arguments, environment=environment) as process:
        _wait_for_port(process, port)
        yield process


def free_port() -> int:
    """Return an unused port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def finished(arguments: Sequence[str]) -> bytes:
    """Run a command to completion and return its output.

    Raises BenchmarkError if it fails or takes too long.
    """
    with started(arguments, pipes=True) as process:
        try:
            output, _ = process.communicate(timeout=_START_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError("no result in time") from error
        if process.returncode:
            raise BenchmarkError(f"exit code {process.returncode}")
        return output


def _wait_for_port(process: Process, port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BenchmarkError(f"the server ended with code {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_POLL_SECONDS)
        else:
            return
    raise BenchmarkError(f"the server did not listen within {_START_SECONDS:.0f} s")


def _stop(process: Process) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _quoted(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:_QUOTED_CHARACTERS]}" if last else ""
