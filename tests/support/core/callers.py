"""A scripted caller."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from axolotl_core import Context, ITool
from axolotl_core.calls.steps import KeptStep
from axolotl_core.errors import MissingCapability
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.questions.question import Question

AnswerT = TypeVar("AnswerT")


class Caller:
    """Records what it receives, and gives prepared answers by the method of the question."""

    client: Implementation | None = Implementation("inspector", "1")
    trace: TraceContext | None = None
    meta: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.progress: list[tuple[float, float | None, str | None]] = []
        self.logged: list[tuple[LogLevel, Any, str | None]] = []
        self.asked: list[tuple[Context, Question, str | None]] = []
        self.capabilities: list[Mapping[str, Any]] = []
        self.extensions: dict[str, Mapping[str, Any]] = {}
        self.completed: list[str] = []
        self.hung_up = 0
        self.detached = False
        self.kept: dict[str, bytes] = {}

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        self.logged.append((level, data, logger))

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return capability in self.capabilities

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return self.extensions.get(identifier)

    async def ask(
        self, context: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        self.asked.append((context, question, key))
        kind = question.method.partition("/")[0]
        if kind not in self.answers:
            raise MissingCapability(f"no {kind}", question.requires)
        return read(self.answers[kind])

    async def recall(self, context: Context, key: str) -> KeptStep:
        return KeptStep(f"once-{key}", self.kept.get(key))

    async def keep(self, context: Context, key: str, value: bytes) -> None:
        self.kept[key] = value

    async def detach(self, context: Context) -> None:
        self.detached = True

    def url_completed(self, reference: str) -> None:
        self.completed.append(reference)

    def hang_up(self) -> None:
        self.hung_up += 1

    async def visible_tools(self) -> tuple[ITool[Any, Any], ...]:
        return ()
