"""Console sessions of the documentation: commands with their output."""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.support.commands import ForkedCommand
from tests.support.docs.pages import EXAMPLES, Block
from tests.support.docs.running import RunningServer, environment, tidy, words_of

_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Command:
    """A line after a prompt, and the output below it."""

    line: str
    shown: str

    @property
    def serves(self) -> bool:
        """Whether the command runs until it is stopped."""
        words = self.line.split()
        serves = "axolotl serve" in self.line and "http" in self.line
        return serves or self.line == "make serve" or (words[:2] == ["axolotl", "dev"] and "-h" not in words)


def commands_of(block: Block) -> list[Command]:
    """Split a session into commands; a line that ends with a backslash continues."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block.place}: begins without a prompt"
    return [Command(*_split(part)) for part in parts[1:]]


def matches(shown: str, printed: str) -> bool:
    """Compare texts; `…` matches anything in a line, and any number of lines on a line of its own."""
    pattern = "".join(_line_pattern(line) for line in tidy(shown).splitlines())
    return re.fullmatch(pattern, f"{printed}\n" if printed else "") is not None


def refreshed(block: Block, printed: Sequence[str]) -> str:
    """Update a session with the present output wherever the shown text does not match."""
    parts = []
    for command, output in zip(commands_of(block), printed, strict=True):
        broken = "Traceback (most recent call last)" in output
        shown = tidy(command.shown) if broken or matches(command.shown, output) else output
        parts.append(f"$ {command.line}\n" + (f"{shown}\n" if shown else ""))
    return "".join(parts)


class Shell:
    """Plays sessions in the directory of the examples, with the few shell features that the pages need."""

    def play(self, block: Block) -> list[str]:
        """Run a session and return the output of each command."""
        self._directory = EXAMPLES
        self._code = 0
        return [tidy(self._run(command)) for command in commands_of(block)]

    def _run(self, command: Command) -> str:
        if command.serves:
            with RunningServer(command.line.replace("make serve", "axolotl serve --demo --transport http")) as server:
                return server.invitation
        if "|" in command.line:
            return self._run_elsewhere(["bash", "-c", command.line], {})
        variables, words = words_of(command.line)
        if words[0] == "axolotl":
            return self._run_forked(words[1:], variables)
        if words[0] in ("cat", "python"):
            return self._run_elsewhere(words, variables)
        return self._run_builtin(words)

    def _run_builtin(self, words: Sequence[str]) -> str:
        match words:
            case ["cd", place]:
                self._directory /= place
                return ""
            case ["echo", "$?"]:
                return str(self._code)
        raise AssertionError(f"{shlex.join(words)} is no command for this page: use a block that is not run")

    def _run_forked(self, words: Sequence[str], variables: dict[str, str]) -> str:
        reading, writing = os.pipe()
        with open(os.devnull, "rb") as nothing:
            streams = {"stdin": nothing.fileno(), "stdout": writing, "stderr": writing}
            command = ForkedCommand(*words, directory=self._directory, environment=environment(variables), **streams)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as stream:
            output = stream.read()
        self._code = command.wait()
        command.kill()
        return output

    def _run_elsewhere(self, words: Sequence[str], variables: dict[str, str]) -> str:
        done = subprocess.run(
            words,
            cwd=self._directory,
            env=environment(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
            text=True,
        )
        self._code = done.returncode
        return done.stdout


def _line_pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, line.split("…"))) + r"\n"


def _split(part: str) -> tuple[str, str]:
    lines = part.splitlines(keepends=True)
    last = next(index for index, line in enumerate(lines) if not line.endswith("\\\n"))
    return "".join(lines[: last + 1]).rstrip("\n"), "".join(lines[last + 1 :])
