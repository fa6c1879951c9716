"""One run for several callers: the call that the code sees, and the callers behind it."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from axolotl_core.context import ToolContext
from axolotl_core.layer import ToolCall
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.levels import LogLevel
from axolotl_core.protocol.tracing import TraceContext
from axolotl_core.question import Question

__all__ = ["SharedCall", "SharedCaller"]

AnswerT = TypeVar("AnswerT")


class SharedCall(ToolCall, eq=False, kw_only=True):
    """The call of a run that others may join: its cancellation and its deadline are those of the run."""

    first: ToolCall
    """The call that the run was begun for."""


class SharedCaller:
    """All that wait for a run: each of them hears of progress and log messages, and one of them is asked.

    That one is who has waited longest. Its clock stands still while it is asked, as if the run were its own.
    """

    def __init__(self, first: ToolCall, asked_something: Callable[[], None]) -> None:
        self.waiting: dict[ToolCall, None] = {}
        self.asked: ToolCall | None = None
        """Whom the latest question went to."""
        self._first = first
        self._asked_something = asked_something
        self._open: list[ToolCall] = []

    @property
    def client(self) -> Implementation | None:
        """What the client that began says it is."""
        return self._first.client

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the run began in."""
        return self._first.trace

    def is_asked(self, call: ToolCall) -> bool:
        """Tell whether a caller was asked something and has not answered yet."""
        return call in self._open

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell everyone who asked for it."""
        for call in tuple(self.waiting):
            call.caller.report_progress(progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Tell everyone who wants messages of this level."""
        for call in tuple(self.waiting):
            call.caller.log(level, data, logger)

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Tell whether the one who would be asked can be."""
        return self._speaker.caller.declares(capability)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Give the settings that the one who would be asked has of an extension."""
        return self._speaker.caller.extension(identifier)

    async def ask(
        self, context: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask who has waited longest."""
        speaker = self.asked = self._speaker
        self._open.append(speaker)
        try:
            return await speaker.caller.ask(speaker, question, read, key)
        finally:
            self._open.remove(speaker)
            self._asked_something()

    def url_completed(self, reference: str) -> None:
        """Tell the one who was asked."""
        self._speaker.caller.url_completed(reference)

    def hang_up(self) -> None:
        """Free the connections of everyone who can come back."""
        for call in tuple(self.waiting):
            call.caller.hang_up()

    @property
    def _speaker(self) -> ToolCall:
        return next(iter(tuple(self.waiting)), self._first)
