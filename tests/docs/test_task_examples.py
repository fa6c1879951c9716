"""The examples of tasks; each test is named after its file."""

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from axolotl_server import connect


def load(name: str) -> Any:
    """Import an example."""
    return importlib.import_module(name)


async def test_rendering() -> None:
    """A tool that can run as a task is a normal tool to clients without tasks."""
    heard: list[float] = []
    async with connect(load("rendering").Container()) as client:
        outcome = await client.call(
            "render", {"film": "Newts"}, on_progress=lambda params: heard.append(params["progress"])
        )
    assert outcome.text == "Newts is ready"
    assert heard == [1, 2, 3]
    async with connect(load("rendering").Container(), answer=lambda question: {"format": "cinema"}) as client:
        assert (await client.call("print_copies", {"film": "Newts"})).text == "Newts is printed for cinema"


async def test_follow_task(capsys: pytest.CaptureFixture[str]) -> None:
    """A client of revision 2026-07-28 polls a task until it ends, and answers its questions."""
    await load("follow_task").main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["task", "input_required", "completed"]


async def test_long_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task that waits for an answer survives the end of its server, and its step is not repeated."""
    await load("long_report").main(f"sqlite:///{tmp_path}/tasks.db")
    said = capsys.readouterr().out.splitlines()
    assert said == ["collecting Q3", "input_required", "the server is restarted", "Q3: 42, published"]


async def test_test_rendering() -> None:
    """The tests on the page pass."""
    tests = [value for key, value in vars(load("test_rendering")).items() if key.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        assert inspect.iscoroutinefunction(test)
        await test()
