"""Tools that note their runs in a file, for workers that are killed."""

import asyncio
import os
import time
from pathlib import Path

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, tool


class Word(BaseModel):
    word: str


def write(path: str, line: str) -> None:
    """Append a line in one write, so that processes do not mix their lines."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


@tool(task_support="optional", task_restart="resume")
async def note(path: str, number: int, seconds: float = 0.0) -> int:
    """Note the beginning and the end of a run."""
    write(path, f"begin {number}")
    await asyncio.sleep(seconds)
    write(path, f"end {number}")
    return number


@tool(task_support="optional", task_restart="resume")
async def hold(path: str, number: int) -> int:
    """Run until it is cancelled, and note when that was, on the clock that all processes share."""
    write(path, f"begin {number}")
    try:
        await asyncio.Event().wait()
    finally:
        write(path, f"stop {number} {time.monotonic()}")
    return number


@tool(task_support="optional", task_restart="resume", max_concurrency=3)
async def few(path: str, number: int) -> int:
    """Run at most three times at once."""
    write(path, "begin")
    await asyncio.sleep(0.02)  # sleeps: the duration of a run
    write(path, "end")
    return number


@tool(task_support="optional", task_restart="resume")
async def wait(path: str, number: int, context: Context) -> str:
    """Charge once, ask, and note the answer."""
    await context.step("charge", lambda once: write(path, f"charge {number}"))
    answer = await context.ask(Word, "Which word?", key="word")
    write(path, f"{number} {answer.word}")
    return answer.word


class Container(containers.DeclarativeContainer):
    """The container."""

    tools = providers.List(*map(providers.Object, (note, hold, few, wait)))


def lines_of(path: Path) -> list[str]:
    """Read the notes."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
