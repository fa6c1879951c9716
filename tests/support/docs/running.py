"""Processes for the documentation tests."""

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

from tests.support.commands import ForkedCommand
from tests.support.docs.pages import EXAMPLES

_SECONDS: Final = 30
_ASSIGNMENTS: Final = re.compile(r"(?:[A-Z_]+=\S+ )*")
_SHOWN_ADDRESS: Final = "127.0.0.1:8000"


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a reader's environment: the command on the path, no colors and no settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("AXOLOTL_", "FORCE_COLOR"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', '')}"
    return {**own, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", **(extra or {})}


def tidy(text: str) -> str:
    """Strip trailing spaces, empty lines at the start and end, and the watchdog's warnings on a busy machine."""
    lines = [line.rstrip() for line in text.splitlines() if "the event loop was blocked for" not in line]
    return "\n".join(lines).strip("\n")


def words_of(line: str) -> tuple[dict[str, str], list[str]]:
    """Parse a command line into environment variables and the words of the command."""
    assigned = _ASSIGNMENTS.match(line)
    assert assigned is not None
    variables = dict(word.split("=", 1) for word in shlex.split(assigned[0]))
    return variables, shlex.split(line[assigned.end() :].replace("\\\n", " "))


class RunningServer:
    """An HTTP server at a free port, stopped with Ctrl-C when the block ends."""

    url: str
    invitation: str
    """The printed text, with the usual port instead of the actual one."""

    def __init__(self, line: str) -> None:
        self._line = line

    def __enter__(self) -> "RunningServer":
        variables, (program, *words) = words_of(self._line)
        assert program == "axolotl"
        with open(os.devnull, "r+b") as nothing:
            self._process = ForkedCommand(
                *words,
                directory=EXAMPLES,
                environment=environment({"AXOLOTL_HTTP__PORT": "0", **variables}),
                stdin=nothing.fileno(),
                stdout=nothing.fileno(),
            )
        self._stderr = os.fdopen(self._process.stderr, encoding="utf-8")
        lines = "".join(self._until_ready())
        address = re.search(r"127\.0\.0\.1:\d+", lines)
        assert address is not None, lines
        self.url = f"http://{address[0]}/mcp"
        self.invitation = tidy(lines.replace(address[0], _SHOWN_ADDRESS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        with self._stderr:
            self._stderr.read()
        code = self._process.wait()
        self._process.kill()
        assert code == 0

    def _until_ready(self) -> Iterator[str]:
        overdue = threading.Timer(_SECONDS, self._process.send_signal, [signal.SIGKILL])
        overdue.start()
        try:
            for line in self._stderr:
                yield line
                if line.startswith("Press Ctrl-C"):
                    return
        finally:
            overdue.cancel()
