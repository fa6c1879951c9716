"""The descriptors of pipes, which are closed once."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from axolotl_server.transports.pipes import open_reader, open_writer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes")

Opened = list[int]


class Witness:
    """A pipe that opens a file just before it is closed: if its number is free by then, the file gets it."""

    def __init__(self, pipe: Any, opened: Opened) -> None:
        self._pipe = pipe
        self._opened = opened

    def fileno(self) -> int:
        return int(self._pipe.fileno())

    def close(self) -> None:
        self._opened.append(os.open(__file__, os.O_RDONLY))
        self._pipe.close()


def witnessed(kind: Any, opened: Opened) -> asyncio.AbstractEventLoop:
    """Make an event loop of a kind whose pipes are witnesses."""

    class Loop(kind):  # type: ignore[misc]
        async def connect_read_pipe(self, factory: Any, pipe: Any) -> Any:
            return await super().connect_read_pipe(factory, Witness(pipe, opened))

        async def connect_write_pipe(self, factory: Any, pipe: Any) -> Any:
            return await super().connect_write_pipe(factory, Witness(pipe, opened))

    loop: asyncio.AbstractEventLoop = Loop()
    return loop


async def read_to_the_end() -> int:
    """Open a reader, end its input, and return its descriptor when it is done."""
    ended = asyncio.Event()
    theirs, ours = os.pipe()
    valve = await open_reader(theirs, lambda chunk: None, ended.set)
    os.close(ours)
    await ended.wait()
    valve.close()
    return theirs


async def write_to_the_end() -> int:
    """Open a writer, close it, and return its descriptor when it is done."""
    ours, theirs = os.pipe()
    writer = await open_writer(theirs, lambda full: None, lambda: None)
    writer.write(b"x")
    await writer.close()
    assert os.read(ours, 2) == b"x"
    os.close(ours)
    return theirs


@pytest.mark.parametrize("kind", ["asyncio.SelectorEventLoop", "uvloop.Loop"])
@pytest.mark.parametrize("use", [read_to_the_end, write_to_the_end])
def test_a_descriptor_is_closed_once(kind: str, use: Callable[[], Any]) -> None:
    """The descriptor is closed, and a file that gets its number in the meantime stays open."""
    module, _, name = kind.partition(".")
    loops = pytest.importorskip(module)
    opened: Opened = []
    with asyncio.Runner(loop_factory=lambda: witnessed(getattr(loops, name), opened)) as runner:
        descriptor = runner.run(use())
    (file,) = opened
    assert os.read(file, 3) == b'"""'
    os.close(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
