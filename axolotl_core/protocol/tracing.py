"""Where a request stands in a distributed trace, by the W3C's formats."""

import re
from typing import Final

import msgspec

__all__ = ["TraceContext", "read_trace"]

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_MAX_LENGTH: Final = 8192


class TraceContext(msgspec.Struct, frozen=True):
    """What a caller says of the trace its request belongs to; none of it can be trusted."""

    traceparent: str
    tracestate: str | None = None
    baggage: str | None = None

    @property
    def trace_id(self) -> str:
        """The id of the whole trace."""
        return self.traceparent.split("-")[1]

    @property
    def parent_id(self) -> str:
        """The id of the span that made the request."""
        return self.traceparent.split("-")[2]


def read_trace(traceparent: object, tracestate: object, baggage: object) -> TraceContext | None:
    """Make a trace context of what a request carries; what is malformed counts as absent."""
    if not isinstance(traceparent, str) or len(traceparent) > _MAX_LENGTH or not _TRACEPARENT.fullmatch(traceparent):
        return None
    return TraceContext(traceparent, _text(tracestate), _text(baggage))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_LENGTH and value.isprintable() else None
