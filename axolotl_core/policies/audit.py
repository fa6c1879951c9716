"""What is recorded of calls, and the ports of what keeps the records."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, Literal, TypeAlias

import msgspec
from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from axolotl_core.features.feature import Kind

AuditEvent: TypeAlias = Literal["start", "end", "gap"]
"""`start` comes before the code of a tool that may destroy something, `end` when a call has ended however it did, `gap`
where records were lost."""

Outcome: TypeAlias = Literal[
    "ok",
    "error",
    "failed",
    "invalid_arguments",
    "timeout",
    "cancelled",
    "overloaded",
    "denied",
    "quota",
    "input_required",
    "abandoned",
    "unknown",
]
"""How a call ended: `error` is one that its code told the caller, `failed` one that was hidden, `abandoned` an answer
although the code went on, `unknown` an end that the process did not live to see."""


class Sensitive:
    """Marks an argument that must not appear in records: `password: Annotated[str, Sensitive]`.

    In the input schema, the argument is `writeOnly`.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, source: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(source)
        return {**schema, "writeOnly": True} if handler.mode == "validation" else schema


class AuditRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is kept of one call, or of the loss of records."""

    time: str
    """When it was made, in UTC, as RFC 3339 with microseconds."""
    event: AuditEvent
    call_id: str | None = None
    """A random id of the call: its `start` and its `end` share it, and an answer that hides an error names it."""
    kind: Kind | None = None
    name: str | None = None
    """The canonical name: of a resource its URI, or the template of it."""
    requested: str | None = None
    """The name as the caller wrote it; None for resources, whose URIs may hold arguments."""
    toolset: str | None = None
    subject: str | None = None
    tenant: str | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    """Why, in a word: what a refusal says, why a call was stopped, or the type of a hidden error."""
    rule: str | None = None
    """Which rule of a policy decided, where one says so."""
    duration_seconds: float | None = None
    queued_seconds: float | None = None
    digest: str | None = None
    """Of the arguments in canonical JSON, with the name of the algorithm before it."""
    arguments: msgspec.Raw | None = None
    """The arguments as JSON without what is sensitive, where settings ask for them and they were valid."""
    trace_id: str | None = None
    lost: int | None = None
    """How many records are missing here."""


class IAuditSink(ABC):
    """Keeps records. It is spoken to from the event loop, also before calls are answered, so it must not block long."""

    @abstractmethod
    def write(self, record: AuditRecord) -> Awaitable[None] | None:
        """Take a record; the answer is None if it is kept already, else what to await until it is.

        Any exception, here or from the awaitable, means that the record is not kept.
        """

    def open(self) -> None:
        """Make ready; called once before the first record, and again where that failed.

        Raises:
            ConfigurationError: if it cannot be used as it is set up.
        """
        return

    def flush(self, seconds: float) -> bool:
        """Block, though not longer than that, until every record taken so far is kept; answers whether that is so.

        It serves calls that are answered while their code goes on, which leaves no time to await anything.
        """
        return True

    def close(self) -> None:
        """Keep what is still to be kept and let go of everything."""
        return
