"""The progress of calls, at a real terminal and elsewhere."""

import os
import pty
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from axolotl_cli.views.progress import plain_number
from tests.support.commands import ForkedCommand

TOOLS = '''
import asyncio
from dependency_injector import containers, providers
from axolotl_core import Context, tool

@tool
async def climb(context: Context) -> str:
    """Climb."""
    for done in range(0, 50_000_001, 250_000):
        context.report_progress(done, 50_000_000, f"row {done} [bold]")
        await asyncio.sleep(0.002)
        if done == 25_000_000:
            context.log("info", "half way")
    return "there"

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(climb))
'''
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def screen_of(directory: Path, *words: str) -> tuple[int, str]:
    """Run a command whose standard error is a terminal, and return its exit code and what the terminal got."""
    ours, theirs = pty.openpty()
    with open(os.devnull, "r+b") as nothing:
        command = ForkedCommand(
            *words,
            directory=directory,
            environment={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
            stdin=nothing.fileno(),
            stdout=nothing.fileno(),
            stderr=theirs,
        )
    os.close(theirs)
    shown = b""
    try:
        with suppress(OSError):  # the terminal was closed
            while piece := os.read(ours, 65536):
                shown += piece
        return command.wait(), shown.decode()
    finally:
        command.kill()
        os.close(ours)


@pytest.mark.slow
def test_one_bar_at_a_terminal(tmp_path: Path) -> None:
    """Hundreds of reports make one bar, with whole numbers; log messages appear above it."""
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    code, shown = screen_of(tmp_path, "call", "tools.py", "climb")
    assert code == 0, shown
    lines = [line for line in _SEQUENCE.sub("", shown).replace("\r", "\n").split("\n") if line.strip()]
    assert "50000000/50000000" in lines[-1]
    assert lines[-1].endswith("row 50000000 [bold]")
    assert "info: half way" in [line.strip() for line in lines]
    assert "e+0" not in shown
    assert shown.count("\n") < 10  # the bar is drawn over and over on the same line


@pytest.mark.slow
def test_control_sequences(tmp_path: Path) -> None:
    """A terminal shows the control sequences of a server instead of obeying them."""
    text = TOOLS.replace('return "there"', 'raise ToolError("\\x1b[2Jgone")').replace("tool\n", "tool, ToolError\n", 1)
    (tmp_path / "tools.py").write_text(text, encoding="utf-8")
    code, shown = screen_of(tmp_path, "call", "tools.py", "climb")
    assert code == 1, shown
    assert "\\x1b[2Jgone" in shown
    assert "\x1b[2Jgone" not in shown


@pytest.mark.slow
def test_nothing_elsewhere(tmp_path: Path) -> None:
    """Without a terminal there is no progress, only the log message."""
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    with open(os.devnull, "r+b") as nothing:
        command = ForkedCommand("call", "tools.py", "climb", directory=tmp_path, stdin=nothing.fileno())
    try:
        with os.fdopen(command.stderr) as stderr, os.fdopen(command.stdout) as stdout:
            assert (stdout.read(), stderr.read()) == ("there\n", "info: half way\n")
        assert command.wait() == 0
    finally:
        command.kill()


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_050_000, "1050000"), (5e7, "50000000"), (0.5, "0.5"), (2.0, "2"), (1 / 3, "0.33"), (float("inf"), "inf")],
)
def test_numbers(value: Any, text: str) -> None:
    """Numbers have no exponent, and whole ones no fraction."""
    assert plain_number(value) == text
