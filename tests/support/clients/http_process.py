"""A server over HTTP in a process of its own."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support.servers.serving import PATIENCE_SECONDS, ROOT

_ADDRESS = re.compile(r" at (http://\S+)")
_READY = "Press Ctrl-C to stop."


class _Output:
    """Reads what a process writes, so that it never waits for a reader."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self.ready = threading.Event()
        self._process = process
        self._thread = threading.Thread(target=self._read, name="server-output")
        self._thread.start()

    def close(self) -> None:
        """Wait for the end of the output."""
        self._thread.join()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for line in stream:
                self.lines.append(line)
                if _READY in line:
                    self.ready.set()
        self.ready.set()


@contextmanager
def http_process(target: str, *options: str) -> Iterator[str]:
    """Serve a container until the block ends; gives the URL of the endpoint."""
    process = _start(["serve", target, "--transport", "http", "--port", "0", *options])
    output = _Output(process)
    try:
        output.ready.wait(PATIENCE_SECONDS)
        found = _ADDRESS.search("".join(output.lines))
        assert found is not None, f"the server does not start: {''.join(output.lines)}"
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
            output.close()


def _start(words: Sequence[str]) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AXOLOTL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "axolotl_cli", *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=inherited,
        cwd=ROOT,
        text=True,
    )
