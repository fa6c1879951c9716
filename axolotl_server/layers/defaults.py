"""The layers every tool gets, outermost first, and why they stand in this order.

Validation comes first, so that a malformed call takes no slot and starts no clock. The deadline stands around the
concurrency limit, so that it covers all the time a caller waits. The user's layers are innermost: they see valid
arguments and run under the deadline.
"""

from collections.abc import Callable, Sequence

from axolotl_core.layer import ILayer
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.layers.timeout import ILane, TimeoutLayer
from axolotl_server.layers.validation import ValidationLayer

__all__ = ["default_layers"]


def default_layers(lane_for: Callable[[float], ILane], user_layers: Sequence[ILayer]) -> tuple[ILayer, ...]:
    """Put the framework's layers around the user's."""
    return (ValidationLayer(), TimeoutLayer(lane_for), ConcurrencyLayer(), *user_layers)
