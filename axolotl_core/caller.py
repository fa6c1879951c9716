"""The other side of a running call, as the context speaks to it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from axolotl_core.errors import MissingCapability
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.levels import LogLevel
from axolotl_core.protocol.tracing import TraceContext
from axolotl_core.question import Question

if TYPE_CHECKING:
    from axolotl_core.context import ToolContext

__all__ = ["NOBODY", "ICaller"]

AnswerT = TypeVar("AnswerT")


class ICaller(Protocol):
    """Who made a call."""

    @property
    def client(self) -> Implementation | None:
        """What the client says it is; never proof of anything."""
        ...

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the request belongs to."""
        ...

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification if the caller asked for them."""
        ...

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message if the caller wants those of this level."""
        ...

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Tell whether the client said that it can do something."""
        ...

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Give the client's settings of an extension, None if it does not have it."""
        ...

    async def ask(
        self, context: "ToolContext", question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Have a question answered; `read` makes sense of the answer.

        Raises:
            MissingCapability: if the client cannot be asked this.
            Declined: if it did not answer.
        """
        ...

    def url_completed(self, reference: str) -> None:
        """Say that the user is done with a page, if the caller's revision has a word for it."""
        ...

    def hang_up(self) -> None:
        """End the caller's connection if it can come back for the answer."""
        ...


class _Nobody:
    """The caller of a context that was made by hand, as unit tests do."""

    client: Implementation | None = None
    trace: TraceContext | None = None

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        return

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        return

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return False

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return None

    async def ask(
        self, context: "ToolContext", question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        raise MissingCapability("Nobody is there to be asked", question.requires)

    def url_completed(self, reference: str) -> None:
        return

    def hang_up(self) -> None:
        return


NOBODY: ICaller = _Nobody()
