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
    from axolotl_core.calls.context import Context
    from axolotl_core.tools.tool import ITool

AnswerT = TypeVar("AnswerT")


class ICaller(Protocol):
    """The caller of a feature: the client as the code sees it. The methods themselves know no client."""

    @property
    def client(self) -> Implementation | None:
        """The name and version that the client claims. They prove nothing."""
        return None

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the request belongs to."""
        return None

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request, without the keys of the protocol."""
        return MappingProxyType({})

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the caller asked for progress."""
        return

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the caller wants messages of this level."""
        return

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Whether the client declared a capability."""
        return False

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Return the client's settings for an extension; None if it does not support it."""
        return None

    async def ask(
        self, context: "Context", question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask the caller a question, and parse the answer with `read`.

        Raises:
            MissingCapability: if the client does not support such questions.
            Declined: if the question was not answered.
        """
        raise MissingCapability("There is no caller to ask", question.requires)

    async def recall(self, context: "Context", key: str) -> KeptStep:
        """Return what earlier runs of this call know about a step."""
        return KeptStep(step_idempotency_key(token_hex(16), key))

    async def keep(self, context: "Context", key: str, value: bytes) -> None:
        """Store the result of a step, as JSON, for later runs of this call.

        Raises:
            ToolError: if there is no room for it.
        """
        return

    async def detach(self, context: "Context") -> None:
        """Continue the call as a task, if it can become one. Raises Detached in that case."""
        return

    def url_completed(self, reference: str) -> None:
        """Notify the client that the user has finished with a page, if the revision supports that."""
        return

    def hang_up(self) -> None:
        """Close the caller's connection, if it can reconnect for the result."""
        return

    async def visible_tools(self) -> "tuple[ITool[Any, Any], ...]":
        """Return the tools that the caller may use."""
        return ()


class _Nobody(ICaller):
    """The caller in a context without a server, as in unit tests."""


NOBODY: ICaller = _Nobody()
