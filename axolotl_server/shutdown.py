"""Being told to stop: once means drain, twice means now."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["StopSignal"]


class StopSignal:
    """The wish that the server should end, from a signal or from a client that left."""

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._hastened = asyncio.Event()

    def set(self) -> None:
        """Ask for the end."""
        self._wanted.set()

    def repeat(self) -> None:
        """Ask for the end; asked again, do not wait for anything any more."""
        if self._wanted.is_set():
            self._hastened.set()
        self._wanted.set()

    async def wait(self) -> None:
        """Wait until the end is asked for."""
        await self._wanted.wait()

    async def unless_hastened(
        self, work: Coroutine[Any, Any, object], otherwise: Callable[[], Coroutine[Any, Any, object]] | None = None
    ) -> None:
        """Do some last work, dropped for `otherwise` when the end is asked for again."""
        working = asyncio.ensure_future(work)
        hastened = asyncio.ensure_future(self._hastened.wait())
        try:
            await asyncio.wait((working, hastened), return_when=asyncio.FIRST_COMPLETED)
            if not working.done() and otherwise is not None:
                await otherwise()
        finally:
            working.cancel()
            hastened.cancel()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the process's termination signals while the block runs."""
        loop = asyncio.get_running_loop()
        wanted = (signal.SIGINT, signal.SIGTERM)
        for number in wanted:
            loop.add_signal_handler(number, self.repeat)
        try:
            yield
        finally:
            for number in wanted:
                loop.remove_signal_handler(number)
