"""The audit log: `AuditRecord`, `IAuditSink` and `Sensitive`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from axolotl_core.features.feature import Kind

AuditEvent: TypeAlias = Literal["start", "end", "answered", "cancelled", "rejected", "gap"]
"""`start`: a tool that may be destructive is about to run. `end`: a call has ended. `answered`: a question of a call or
task was answered. `cancelled`: a task was cancelled. `rejected`: tokens were rejected. `gap`: records were lost."""

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
    "accepted",
]
"""How a call ended. `error`: an error that the caller could read. `failed`: an error that was hidden. `abandoned`: the
caller was answered while the code was still running. `unknown`: the process died before the call ended. `accepted`:
the call runs as a stored task."""


class Sensitive:
    """Marks an argument that must not appear in records: `password: Annotated[str, Sensitive]`.

    In the input schema, the argument is `writeOnly`.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, source: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(source)
        return {**schema, "writeOnly": True} if handler.mode == "validation" else schema


class AuditRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A record of a call, of an answer or a cancellation, of rejected tokens, or of lost records."""

    time: str
    """When the record was written: RFC 3339 in UTC, with microseconds."""
    event: AuditEvent
    call_id: str | None = None
    """A random ID of the call, in its `start` and `end` records and in a reply that hides an error."""
    kind: Kind | None = None
    name: str | None = None
    """The name of the feature. For a resource, its URI or URI template."""
    requested: str | None = None
    """The name as the caller wrote it; None for resources, whose URIs may contain arguments."""
    toolset: str | None = None
    subject: str | None = None
    tenant: str | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    """Why the call was refused or stopped, why the token was rejected, or the type of a hidden error."""
    rule: str | None = None
    """The rule that decided, if a policy did."""
    duration_seconds: float | None = None
    queued_seconds: float | None = None
    digest: str | None = None
    """A digest of the arguments in canonical JSON, after the name of the algorithm."""
    arguments: msgspec.Raw | None = None
    """The redacted arguments, if they are recorded and were valid."""
    trace_id: str | None = None
    issuer: str | None = None
    """The issuer of the subject; None if it comes from the settings of the server."""
    definition: str | None = None
    """A digest of the feature as clients see it: it changes with its description or schema."""
    lost: int | None = None
    """The number of records lost before this one."""
    client_address: str | None = None
    """The address of the client over HTTP; `http.trusted_proxies` decides which proxies may report it."""
    repeated: int | None = None
    """How many tokens were rejected since the last record about this address."""
    task: str | None = None
    """The ID of the stored task that the call was accepted as, or that it runs for."""
    run: int | None = None
    """The number of the run of the task; None in the record that it was accepted."""
    key: str | None = None
    """The key of the question that was answered, if it has one."""
    action: str | None = None
    """The answer: `accept`, `decline` or `cancel`, or `refuse` if the client did not ask. An approval without a yes is
    `decline`."""


def timestamp() -> str:
    """Return the present time as records have it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class IAuditSink(ABC):
    """Stores audit records. It is called on the event loop, also before calls are answered, and must not block long."""

    @abstractmethod
    def write(self, record: AuditRecord) -> Awaitable[None] | None:
        """Store a record. Return None if it is stored already, otherwise an awaitable that ends when it is.

        An exception, here or from the awaitable, means that the record was not stored.
        """

    def open(self) -> None:
        """Prepare for the first record. Called again after a failure.

        Raises:
            ConfigurationError: if the configuration of the sink is invalid.
        """
        return

    def flush(self, seconds: float) -> bool:
        """Block until all records are stored, up to a number of seconds. Return whether they are.

        Used for calls that are answered while their code is still running, when awaiting is not possible.
        """
        return True

    def close(self) -> None:
        """Store pending records and release all resources."""
        return
