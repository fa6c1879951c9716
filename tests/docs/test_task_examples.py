"""The examples about tasks do what the page says; a test is named after the file it is about."""

import importlib
import inspect
from typing import Any

import pytest

from axolotl_server import connect


def load(name: str) -> Any:
    """Import an example."""
    return importlib.import_module(name)


async def test_rendering() -> None:
    """A tool that may run as a task is an ordinary one to clients that know none."""
    heard: list[float] = []
    async with connect(load("rendering").Container()) as client:
        outcome = await client.call(
            "render", {"film": "Newts"}, on_progress=lambda params: heard.append(params["progress"])
        )
    assert outcome.text == "Newts is ready"
    assert heard == [1, 2, 3]


async def test_follow_task(capsys: pytest.CaptureFixture[str]) -> None:
    """A client of the stateless revision looks at a task until it is over, and answers what it asks."""
    await load("follow_task").main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["task", "input_required", "completed"]


async def test_test_rendering() -> None:
    """The tests that the page shows pass."""
    tests = [value for key, value in vars(load("test_rendering")).items() if key.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        assert inspect.iscoroutinefunction(test)
        await test()
