"""Being told to stop: once means drain, twice means now, three times means at once."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_KILLED_BY: Final = 128
"""What shells add to the number of the signal that ended a process."""


class StopSignal:
    """The wish that the server should end, from a signal or from a client that left."""

    def __init__(self) -> None:
        self._times = 0
        self._wanted = asyncio.Event()
        self._hastened = asyncio.Event()
        self.source: str | None = None
        """The signal that asked first, by its name; None where it was none."""
        self.replaced = False
        """Whether another process takes the place of this one, at the same socket."""

    @property
    def wanted(self) -> bool:
        """Whether the end was asked for; true from the very moment of the signal on."""
        return self._times > 0

    @property
    def hastened(self) -> bool:
        """Whether it was asked for again."""
        return self._times > 1

    def set(self) -> None:
        """Ask for the end, unless somebody has."""
        self._times = max(1, self._times)
        self._tell()

    def repeat(self) -> None:
        """Ask for the end; asked again, do not wait for anything any more."""
        self._times += 1
        self._tell()

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
            if working.done():
                working.result()
            elif otherwise is not None:
                await otherwise()
        finally:
            working.cancel()
            hastened.cancel()
            await asyncio.wait((hastened,))  # else it would outlive those who look what is left

    @contextmanager
    def listening(self, on_signal: Callable[[int], object] | None = None) -> Iterator[None]:
        """Take the process's termination signals while the block runs; the third ends the process.

        `on_signal` is told how often the end has been asked for, in the midst of whatever runs then.
        """
        loop = asyncio.get_running_loop()

        def hear(number: int, frame: FrameType | None) -> None:
            self.source = self.source or signal.Signals(number).name
            self._times += 1
            if self._times > 2:
                os._exit(_KILLED_BY + number)
            with suppress(RuntimeError):  # the loop is closed: all is over
                loop.call_soon_threadsafe(self._tell)
            if on_signal is not None:
                on_signal(self._times)

        if threading.current_thread() is not threading.main_thread():  # only that one is told of signals
            yield
            return
        before = {number: signal.signal(number, hear) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _tell(self) -> None:
        if self.wanted:
            self._wanted.set()
        if self.hastened:
            self._hastened.set()
