"""Fixtures that run commands, in this process and in others."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axolotl_cli.app import app
from tests.support.processes import Processes


class CommandLine:
    """Runs commands in this process, in an empty directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *words: str) -> "Answer":
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        return Answer(result.exit_code, result.stdout, result.stderr)

    def write(self, name: str, text: str) -> None:
        """Write a file to the directory."""
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        # Python reuses a compiled module if size and second of its source match: delete it when the file changes.
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()


class Answer:
    """The exit code and the output of a command."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pristine: None) -> CommandLine:
    """Run commands in an empty directory, and undo their imports and logging afterwards."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Start processes, and end them after the test."""
    with Processes() as started:
        yield started


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Create a named pipe: a tool that reads it waits until the test writes to it."""
    if sys.platform == "win32":
        pytest.skip("there are no named pipes here")
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def pristine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the developer's settings, and restore imports, logging and the garbage collector afterwards."""
    for name in os.environ:
        if name.startswith("AXOLOTL_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", sys.path[:])
    root = logging.getLogger()
    handlers, level, thresholds = root.handlers[:], root.level, gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, module in tuple(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
