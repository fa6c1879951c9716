"""The cost of tools: bytes and tokens of what a model sees, per tool, tool set and server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from axolotl_cli.budget.tokens import TokenMethod
from axolotl_core.features.spec import ToolSpec
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server.eras.presentation import tool_definition

_SEEN: tuple[str, ...] = ("name", "description", "inputSchema")
"""The members of a definition that clients give to models."""


class Cost(msgspec.Struct, frozen=True):
    """What some tools cost. Output schemas are counted separately, because few clients give them to models."""

    tools: int
    bytes: int
    tokens: int
    output_bytes: int
    output_tokens: int


class ToolCost(msgspec.Struct, frozen=True):
    """What one tool costs."""

    name: str
    toolset: str | None
    bytes: int
    tokens: int
    output_bytes: int
    output_tokens: int


def definition_of(spec: ToolSpec) -> Mapping[str, Any]:
    """Describe a tool as a client of the latest revision receives it."""
    described: Mapping[str, Any] = msgspec.to_builtins(tool_definition(spec, LATEST_STATELESS_REVISION))
    return described


def cost_of(definition: Mapping[str, Any], toolset: str | None, method: TokenMethod) -> ToolCost:
    """Count the bytes and tokens of a tool, as compact JSON."""
    seen = encode({key: definition[key] for key in _SEEN})
    output = encode(definition["outputSchema"]) if "outputSchema" in definition else b""
    counts = (len(seen), method.count(seen.decode()), len(output), method.count(output.decode()))
    return ToolCost(definition["name"], toolset, *counts)


def total(costs: Iterable[ToolCost]) -> Cost:
    """Add the costs of some tools."""
    listed = tuple(costs)
    sums = (sum(getattr(cost, field) for cost in listed) for field in Cost.__struct_fields__[1:])
    return Cost(len(listed), *sums)


def by_toolset(costs: Sequence[ToolCost]) -> dict[str | None, Cost]:
    """Add the costs of each tool set, the most expensive first."""
    names = dict.fromkeys(cost.toolset for cost in costs)
    sets = {name: total(cost for cost in costs if cost.toolset == name) for name in names}
    return dict(sorted(sets.items(), key=lambda item: -item[1].bytes))
