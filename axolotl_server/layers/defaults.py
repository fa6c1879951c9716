"""The layers every feature gets, outermost first, and why they stand in this order.

The record stands outside of everything, so that refusals are recorded too. Who may not call learns nothing else, so
authorization comes before quota, and quota before the arguments are looked at: a flood of wrong calls is a flood.
A malformed call takes no place and starts no clock, so validation comes before the deadline. The deadline covers all
the time a caller waits: for a running call with the same key, for an approval, for a place. A call that joins another
one, or that nobody approves, takes no place either. The breaker stands around the retries: it counts what its caller
would have seen. Between them stands the start of a record: what was refused never began. The user's layers are
innermost: they see valid arguments and run under the deadline.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from axolotl_core.layer import ILayer
from axolotl_server.layers.timeout import ILane, TimeoutLayer
from axolotl_server.layers.validation import ValidationLayer

__all__ = ["OptionalLayers", "default_layers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalLayers:
    """What a server has beyond the arguments and the deadline, by its place."""

    deciding: Sequence[ILayer] = ()
    """Authorization, quota."""
    guarding: Sequence[ILayer] = ()
    """Idempotency, approval, concurrency, breaker, the start of a record, retry."""


def default_layers(
    lane_for: Callable[[float], ILane], user_layers: Sequence[ILayer], optional: OptionalLayers
) -> tuple[ILayer, ...]:
    """Put the framework's layers around the user's."""
    return (*optional.deciding, ValidationLayer(), TimeoutLayer(lane_for), *optional.guarding, *user_layers)
