"""`ICaller`, the caller of a feature as its context sees it."""

from collections.abc import Callable, Mapping
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from axolotl_core.calls.steps import KeptStep, step_idempotency_key
from axolotl_core.errors import MissingCapability
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.questions.question import Question

if TYPE_CHECKING:
    from axolotl_core.calls.context import ToolContext
    from axolotl_core.tools.tool import ITool

AnswerT = TypeVar("AnswerT")


class ICaller(Protocol):
    """The caller of a feature: the client as the code sees it."""

    @property
    def client(self) -> Implementation | None:
        """The name and version that the client claims. They prove nothing."""
        ...

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the request belongs to."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request, without the keys of the protocol."""
        ...

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the caller asked for progress."""
        ...

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the caller wants messages of this level."""
        ...

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Whether the client declared a capability."""
        ...

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Return the client's settings for an extension; None if it does not support it."""
        ...

    async def ask(
        self, context: "ToolContext", question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask the caller a question, and parse the answer with `read`.

        Raises:
            MissingCapability: if the client does not support such questions.
            Declined: if the question was not answered.
        """
        ...

    async def recall(self, context: "ToolContext", key: str) -> KeptStep:
        """Return what earlier runs of this call know about a step."""
        ...

    async def keep(self, context: "ToolContext", key: str, value: bytes) -> None:
        """Store the result of a step, as JSON, for later runs of this call.

        Raises:
            ToolError: if there is no room for it.
        """
        ...

    async def detach(self, context: "ToolContext") -> None:
        """Continue the call as a task, if it can become one. Raises Detached in that case."""
        ...

    def url_completed(self, reference: str) -> None:
        """Notify the client that the user has finished with a page, if the revision supports that."""
        ...

    def hang_up(self) -> None:
        """Close the caller's connection, if it can reconnect for the result."""
        ...

    async def visible_tools(self) -> "tuple[ITool[Any, Any], ...]":
        """Return the tools that the caller may use."""
        ...


class _Nobody:
    """The caller in a context without a server, as in unit tests."""

    client: Implementation | None = None
    trace: TraceContext | None = None
    meta: Mapping[str, Any] = MappingProxyType({})

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
        raise MissingCapability("There is no caller to ask", question.requires)

    async def recall(self, context: "ToolContext", key: str) -> KeptStep:
        return KeptStep(step_idempotency_key(token_hex(16), key))

    async def keep(self, context: "ToolContext", key: str, value: bytes) -> None:
        return

    async def detach(self, context: "ToolContext") -> None:
        return

    def url_completed(self, reference: str) -> None:
        return

    def hang_up(self) -> None:
        return

    async def visible_tools(self) -> "tuple[ITool[Any, Any], ...]":
        return ()


NOBODY: ICaller = _Nobody()
