"""Code that ignores cancellation."""

import asyncio
from collections.abc import Awaitable, Callable

from axolotl_core import Context, ITool, NoArguments

SHORT = 0.05


class Stuck(ITool[NoArguments, str]):
    """Ignores its cancellation until the test releases it, or until it is canceled again after a failed test."""

    name = "stuck"
    timeout_seconds = SHORT

    def __init__(self, last_words: Callable[[Context], Awaitable[object]] | None = None) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.release = asyncio.Event()
        self.ended = asyncio.Event()
        self.contexts: list[Context] = []
        self.problems: list[BaseException] = []
        self._last_words = last_words

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.contexts.append(context)
        self.started.set()
        await self._hold_out(context)
        self.ended.set()
        return "too late"

    async def _hold_out(self, context: Context) -> None:
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            await self._speak(context)
            await self.release.wait()
        await self._speak(context)

    async def _speak(self, context: Context) -> None:
        """Send messages that must not be delivered."""
        if self._last_words is not None:
            try:
                await self._last_words(context)
            except Exception as error:
                self.problems.append(error)
