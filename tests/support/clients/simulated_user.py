"""Whoever sits at a client: answers as a test says, and remembers what was asked and told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    LoggingMessageNotificationParams,
    Root,
    ServerNotification,
    TextContent,
)
from pydantic import FileUrl

from tests.support.servers.serving import PATIENCE_SECONDS

FillIn: TypeAlias = Callable[[ElicitRequestParams], Awaitable[ElicitResult]]
Written: TypeAlias = CreateMessageResult | CreateMessageResultWithTools
Write: TypeAlias = Callable[[CreateMessageRequestParams], Awaitable[Written]]
NotificationT = TypeVar("NotificationT")
ResultT = TypeVar("ResultT")

ROOTS = (Root(uri=FileUrl("file:///home/ada/work"), name="work"), Root(uri=FileUrl("file:///tmp"), name="scratch"))


class Person:
    """One for each connection; a test that begins finds it without memories."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, and answer nothing until told how."""
        self.questions: list[ElicitRequestParams] = []
        self.samples: list[CreateMessageRequestParams] = []
        self.logs: list[LoggingMessageNotificationParams] = []
        self.heard: list[ServerNotification] = []
        self._notices: asyncio.Queue[ServerNotification] = asyncio.Queue()
        self.fill_in: FillIn = answering("decline")
        self.write: Write = writing("")
        self.show_roots: Callable[[], Awaitable[Sequence[Root]]] = _show_roots

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """Answer a form, or agree to open a page."""
        self.questions.append(params)
        return await self.fill_in(params)

    async def sample(self, params: CreateMessageRequestParams) -> Written:
        """Write as the client's model."""
        self.samples.append(params)
        return await self.write(params)

    async def hear_log(self, params: LoggingMessageNotificationParams) -> None:
        """Note a log message."""
        self.logs.append(params)

    async def hear(self, message: ServerNotification | Exception) -> None:
        """Note whatever the server tells."""
        if isinstance(message, Exception):
            raise message
        self.heard.append(message)
        self._notices.put_nowait(message)

    async def next_notice(self, kind: type[NotificationT]) -> NotificationT:
        """Wait for the next notification of a kind; those before it are of no interest."""
        while True:
            notice = await soon(self._notices.get())
            if isinstance(notice, kind):
                return notice


class Progress:
    """What one call told of its progress."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, float | None, str | None]] = []
        self._more = asyncio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Note where it is."""
        self.heard.append((progress, total, message))
        self._more.set()

    async def reached(self, progress: float) -> None:
        """Wait until it got so far."""
        while not any(value >= progress for value, _, _ in self.heard):
            self._more.clear()
            await soon(self._more.wait())


async def soon(awaited: Awaitable[ResultT]) -> ResultT:
    """Wait for something that must happen."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await awaited


def answering(action: Any, **content: Any) -> FillIn:
    """Give every question the same answer."""

    async def answer(params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action=action, content=content or None)

    return answer


def words(*words: str) -> FillIn:
    """Answer one question after the other, each with a word."""
    remaining = iter(words)

    async def answer(params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        return ElicitResult(action="accept", content={"word": next(remaining)})

    return answer


def writing(text: str) -> Write:
    """Have the model always write the same."""

    async def write(params: CreateMessageRequestParams) -> Written:
        return written(text)

    return write


def written(text: str) -> CreateMessageResult:
    """Make a sample of a text."""
    return CreateMessageResult(role="assistant", content=TextContent(text=text), model="parrot", stop_reason="endTurn")


async def _show_roots() -> Sequence[Root]:
    return ROOTS
