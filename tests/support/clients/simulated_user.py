"""The simulated user of a client: gives scripted answers, and records questions and notifications."""

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
    """The user of one connection, which is reset before each test."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything and stop answering."""
        self.questions: list[ElicitRequestParams] = []
        self.samples: list[CreateMessageRequestParams] = []
        self.logs: list[LoggingMessageNotificationParams] = []
        self.heard: list[ServerNotification] = []
        self._notices: asyncio.Queue[ServerNotification] = asyncio.Queue()
        self.fill_in: FillIn = answering("decline")
        self.write: Write = writing("")
        self.show_roots: Callable[[], Awaitable[Sequence[Root]]] = _show_roots

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """Answer a form, or accept to open a page."""
        self.questions.append(params)
        return await self.fill_in(params)

    async def sample(self, params: CreateMessageRequestParams) -> Written:
        """Answer as the client's model."""
        self.samples.append(params)
        return await self.write(params)

    async def hear_log(self, params: LoggingMessageNotificationParams) -> None:
        """Record a log message."""
        self.logs.append(params)

    async def hear(self, message: ServerNotification | Exception) -> None:
        """Record a notification."""
        if isinstance(message, Exception):
            raise message
        self.heard.append(message)
        self._notices.put_nowait(message)

    async def next_notice(self, kind: type[NotificationT]) -> NotificationT:
        """Wait for the next notification of a kind and skip others."""
        while True:
            notice = await soon(self._notices.get())
            if isinstance(notice, kind):
                return notice


class Progress:
    """The recorded progress of one call."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, float | None, str | None]] = []
        self._more = asyncio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))
        self._more.set()

    async def reached(self, progress: float) -> None:
        """Wait until progress reaches a value."""
        while not any(value >= progress for value, _, _ in self.heard):
            self._more.clear()
            await soon(self._more.wait())


async def soon(awaited: Awaitable[ResultT]) -> ResultT:
    """Wait for something with a timeout."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await awaited


def answering(action: Any, **content: Any) -> FillIn:
    """Give the same answer to every question."""

    async def answer(params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action=action, content=content or None)

    return answer


def words(*words: str) -> FillIn:
    """Answer successive questions with successive words."""
    remaining = iter(words)

    async def answer(params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        return ElicitResult(action="accept", content={"word": next(remaining)})

    return answer


def writing(text: str) -> Write:
    """Always return the same text as the model."""

    async def write(params: CreateMessageRequestParams) -> Written:
        return written(text)

    return write


def written(text: str) -> CreateMessageResult:
    """Create a sampling result from a text."""
    return CreateMessageResult(role="assistant", content=TextContent(text=text), model="parrot", stop_reason="endTurn")


async def _show_roots() -> Sequence[Root]:
    return ROOTS
