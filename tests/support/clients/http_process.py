"""An HTTP server in a separate process."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.commands import ForkedCommand
from tests.support.servers.serving import PATIENCE_SECONDS

_ADDRESS = re.compile(r" at (http://\S+)")
_READY = "Press Ctrl-C to stop."


class _Output:
    """Reads the output of a process, so that it never blocks."""

    def __init__(self, descriptor: int) -> None:
        self.lines: list[str] = []
        self.ready = threading.Event()
        self._stream = os.fdopen(descriptor, encoding="utf-8")
        self._thread = threading.Thread(target=self._read, name="server-output")
        self._thread.start()

    def close(self) -> None:
        """Wait for the end of the output."""
        self._thread.join()

    def _read(self) -> None:
        with self._stream as stream:
            for line in stream:
                self.lines.append(line)
                if _READY in line:
                    self.ready.set()
        self.ready.set()


@contextmanager
def http_process(target: str, *options: str) -> Iterator[str]:
    """Serve a container until the block ends, and yield the URL of the endpoint."""
    with open(os.devnull, "r+b") as nothing:
        words = ("serve", target, "--transport", "http", "--port", "0", *options)
        process = ForkedCommand(*words, stdin=nothing.fileno(), stdout=nothing.fileno())
    output = _Output(process.stderr)
    try:
        output.ready.wait(PATIENCE_SECONDS)
        found = _ADDRESS.search("".join(output.lines))
        assert found is not None, f"the server does not start: {''.join(output.lines)}"
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
            output.close()
