"""The cost of each policy, compared with a plain call."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from axolotl_core import ToolAnnotations
from axolotl_core.policies.tool_rules import Breaker, Idempotency, Retry
from benchmarks.layer_load import LayerRounds
from benchmarks.layered import TOOLSET, PassingLayer, ReportingAdd, Variant
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "layers"
_PLAIN = "plain"
_FREE = 1.1
"""A policy that does not apply must be free; the margin allows for noise."""

Settings = Callable[[Path], Mapping[str, Any]]

_OTHERS = [{"name": f"rule {number}", "effect": "allow", "who": {"roles": [f"role {number}"]}} for number in range(9)]
_RULES = {"rules": [*_OTHERS, {"name": "clerks", "effect": "allow", "who": {"roles": ["clerk"], "tenants": ["acme"]}}]}
_QUOTAS = {
    "user": {"per": ["principal"], "rate_per_second": 1e6, "burst": 1e6},
    "day": {"per": ["tenant", "tool"], "limit": 1e9, "window": "day"},
}
_WIDE = {"max_concurrency": 8}
_ONCE = Idempotency(key="key", window_seconds=60)
_DESTRUCTIVE = {"annotations": ToolAnnotations(destructive=True)}


def _fixed(**settings: Any) -> Settings:
    return lambda directory: settings


def _log(durability: str) -> Settings:
    return lambda directory: {"audit": {"jsonl_path": directory / "audit.jsonl", "durability": durability}}


def _shared_quotas(directory: Path) -> Mapping[str, Any]:
    return {"quotas": {"rules": _QUOTAS}, "redis": {"url": f"unix://{directory}/redis.sock"}}


def _shared_results(directory: Path) -> Mapping[str, Any]:
    return {"redis": {"url": f"unix://{directory}/redis.sock"}}


def _many(directory: Path) -> Mapping[str, Any]:
    bulkheads = {"limits": _WIDE, "toolsets": {TOOLSET: _WIDE}}
    return {**_log("write")(directory), "authorization": _RULES, "quotas": {"rules": _QUOTAS}, **bulkheads}


_VARIANTS = (
    Variant(_PLAIN),
    Variant("approval, not needed", settings=_fixed(approval={"required_for": "destructive"}), at_most=_FREE),
    Variant("a layer of one's own", layers=[PassingLayer()]),
    Variant("authorization, 10 rules", settings=_fixed(authorization=_RULES)),
    Variant("quota, 2 rules", settings=_fixed(quotas={"rules": _QUOTAS})),
    Variant("quota, 2 rules, Redis", settings=_shared_quotas, needs_redis=True, calls=20),
    Variant("max_concurrency", _WIDE),
    Variant("max_concurrency of a set", settings=_fixed(toolsets={TOOLSET: _WIDE})),
    Variant("retry, not needed", {"retry": Retry(attempts=3)}),
    Variant("breaker, closed", {"breaker": Breaker()}),
    Variant("deadline moved by progress", {"max_timeout_seconds": 60.0}, kind=ReportingAdd),
    Variant("idempotency, new keys", {"idempotency": _ONCE}),
    Variant("idempotency, stored result", {"idempotency": _ONCE}, one_key=True),
    Variant("idempotency, new keys, Redis", {"idempotency": _ONCE}, _shared_results, needs_redis=True, calls=20),
    Variant("audit, JSON lines, write", settings=_log("write")),
    Variant("audit, JSON lines, write, start and end", _DESTRUCTIVE, _log("write")),
    Variant("audit, JSON lines, fsync", settings=_log("fsync"), calls=20),
    Variant("most of it at once", {**_WIDE, "retry": Retry(attempts=3), "breaker": Breaker()}, _many),
    Variant("in a thread", {"execution": "thread"}, calls=20),
    Variant("in a process", {"execution": "process"}, calls=20),
)
_ROUNDS = LayerRounds()
_COMPARISONS = {variant.name: Comparison(_PLAIN, at_most=variant.at_most) for variant in _VARIANTS[1:]}

SCENARIO = Scenario(
    name=NAME,
    group="layers",
    summary="an in-process call with each policy, compared with a plain call",
    metrics=(
        Metric("cpu", NAME, "µs CPU/call", _COMPARISONS),
        Metric("wall", f"{NAME}, waited for", "µs/call", {name: Comparison(_PLAIN) for name in _COMPARISONS}),
    ),
    series=tuple(Series(variant.name, _ROUNDS.calls_of(variant)) for variant in _VARIANTS),
)
