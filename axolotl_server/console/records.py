"""What is told of a request: who asked for what, how it ended, how long it took."""

import msgspec

__all__ = ["CallRecord"]


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One request, running or ended; the words of its caller are not in it, save where arguments are to be shown."""

    number: int
    """Counts the requests of this process."""
    began: float
    """When it came, in seconds of the epoch."""
    method: str
    revision: str
    subject: str
    kind: str | None = None
    """`tool`, `prompt`, `resource`, `completion` or `extension`; None for what runs no code of the server's author."""
    name: str | None = None
    """The canonical name; of a tool or prompt that is not there the one that was asked for."""
    tenant: str | None = None
    client: str | None = None
    """What the client says it is."""
    outcome: str | None = None
    """None while it runs."""
    reason: str | None = None
    rule: str | None = None
    seconds: float | None = None
    queued_seconds: float | None = None
    result_bytes: int | None = None
    arguments: msgspec.Raw | None = None
    """Without what is sensitive; None unless they are to be shown."""
    reference: str | None = None
    """What the log calls this call by."""
