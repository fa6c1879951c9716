"""Console sessions of the documentation: commands with what they print."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.docs.pages import EXAMPLES, Block

_MARK: Final = "\x1e"
_SECONDS: Final = 30
_SHOWN_PORT: Final = "127.0.0.1:8000"
_ALLOWED: Final = ("axolotl", "cat", "cd", "echo", "make serve", "python")


@dataclass(frozen=True, slots=True)
class Command:
    """A line after a prompt, and what is shown below it."""

    line: str
    shown: str

    @property
    def serves(self) -> bool:
        """Whether it goes on until it is stopped."""
        return self.line == "make serve" or ("axolotl serve" in self.line and "http" in self.line)


def commands_of(block: Block) -> list[Command]:
    """Cut a session into its commands; a line that ends in a backslash goes on."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block.place}: begins without a prompt"
    return [Command(*_split(part)) for part in parts[1:]]


def check_allowed(block: Block) -> None:
    """Refuse commands that a test should not run."""
    for command in commands_of(block):
        words = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", command.line)
        assert words.startswith(_ALLOWED), f"{block.place}: {command.line} is not run by this test"


def play(block: Block) -> list[str]:
    """Run a session and give what each command printed."""
    commands = commands_of(block)
    if any(command.serves for command in commands):
        assert len(commands) == 1, f"{block.place}: a server needs a block of its own"
        return [_served(commands[0])]
    script = "".join(f"{command.line}\n__code=$?; printf '{_MARK}'; (exit $__code)\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=EXAMPLES,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
        check=False,
    )
    return [tidy(output) for output in done.stdout.decode().split(_MARK)[: len(commands)]]


def matches(shown: str, printed: str) -> bool:
    """Compare; `…` stands for anything in a line, on a line of its own for any number of lines."""
    pattern = "".join(_line_pattern(line) for line in tidy(shown).splitlines())
    return re.fullmatch(pattern, f"{printed}\n" if printed else "") is not None


def tidy(text: str) -> str:
    """Drop spaces at line ends, and empty lines at both ends."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _line_pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, line.split("…"))) + r"\n"


def _split(part: str) -> tuple[str, str]:
    lines = part.splitlines(keepends=True)
    last = next(index for index, line in enumerate(lines) if not line.endswith("\\\n"))
    return "".join(lines[: last + 1]).rstrip("\n"), "".join(lines[last + 1 :])


def _environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("AXOLOTL_", "FORCE_COLOR"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', '')}"
    return {**own, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", **(extra or {})}


def _served(command: Command) -> str:
    with RunningServer(command.line.replace("make serve", "axolotl serve --transport http")) as running:
        return running.invitation


class RunningServer:
    """An HTTP server at a free port, stopped with Ctrl-C when the block ends."""

    def __init__(self, line: str, cwd: Path = EXAMPLES) -> None:
        self._line = line
        self._cwd = cwd
        self.url = ""
        self.invitation = ""

    def __enter__(self) -> "RunningServer":
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {self._line}"],
            cwd=self._cwd,
            env=_environment({"AXOLOTL_HTTP__PORT": "0"}),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = "".join(self._until_ready())
        port = re.search(r"127\.0\.0\.1:(\d+)", lines)
        assert port is not None, lines
        self.url = f"http://{port[0]}/mcp"
        self.invitation = tidy(lines.replace(port[0], _SHOWN_PORT))
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(_SECONDS) == 0
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _until_ready(self) -> Iterator[str]:
        assert self._process.stderr is not None
        overdue = threading.Timer(_SECONDS, self._process.kill)
        overdue.start()
        try:
            for line in self._process.stderr:
                yield line
                if line.startswith("Press Ctrl-C"):
                    return
        finally:
            overdue.cancel()


def refreshed(block: Block, printed: Sequence[str]) -> str:
    """Write a session again, with what is printed now wherever the shown text no longer matches."""
    parts = []
    for command, output in zip(commands_of(block), printed, strict=True):
        shown = tidy(command.shown) if matches(command.shown, output) else output
        parts.append(f"$ {command.line}\n" + (f"{shown}\n" if shown else ""))
    return "".join(parts)
