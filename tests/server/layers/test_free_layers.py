"""Policies cost nothing for tools that do not use them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_core.features.feature import IFeature
from axolotl_core.layers import Invoke, type_of_layer
from axolotl_core.policies.tool_rules import Breaker, Idempotency, Retry
from axolotl_server import ServerHost
from axolotl_server.layers.approval import ApprovalLayer
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.layers.idempotency.layer import IdempotencyLayer
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.layers.retry import RetryLayer
from axolotl_server.transports.stream_exchange import StreamExchange
from tests.support.peers.wire import call
from tests.support.tools import Echo

PACKAGES = ("axolotl_core", "axolotl_server")
ROOT = Path(__file__).parents[3]


class Guarded(ITool[NoArguments, str]):
    """A tool with every policy."""

    name = "guarded"
    annotations = ToolAnnotations(destructive=True, idempotent=True)
    requires_approval = True
    idempotency = Idempotency(window_seconds=60)
    retry = Retry(attempts=3)
    breaker = Breaker()
    max_concurrency = 1
    max_timeout_seconds = 60.0

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "done"


ELSEWHERE: Mapping[str, Any] = {
    "approval": {"required_for": "destructive", "tools": ["guarded"]},
    "quotas": {"rules": {"dear": {"tools": ["guarded"], "rate_per_second": 1}}},
    "toolsets": {"vault": {"max_concurrency": 1}},
}
"""Policies for the other tool, for prompts, or for nothing."""


def host_of(settings: Mapping[str, Any], *vault: IFeature) -> ServerHost:
    """Serve `echo`, and another tool in a tool set."""
    container = containers.DynamicContainer()
    plain, other = providers.Object([Echo()]), providers.Object(list(vault))
    container.tools = providers.Aggregate(plain=plain, vault=other)
    return ServerHost(container, flags=settings)


def composition(invoke: Invoke) -> list[str]:
    """Return the names of the functions around a call, the outermost first."""
    names: list[str] = []
    following: Any = invoke
    while following is not None:
        names.append(following.__qualname__)
        code = getattr(following, "__code__", None)
        held = dict(zip(code.co_freevars, following.__closure__ or (), strict=True)) if code else {}
        inner = held.get("call_next") or held.get("timed")
        following = None if inner is None else inner.cell_contents
    return names


async def functions_of_a_call(host: ServerHost) -> list[str]:
    """Call `echo` once and record every function of the framework that runs."""
    replies: list[bytes] = []
    peer = StreamExchange(host.handler, replies.append)
    ran: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES:
            ran.append(f"{path.stem}.{frame.f_code.co_qualname}")

    await host.handler.handle(call("echo", {"text": "first"}, id=1), peer)  # to create everything that is created once
    sys.setprofile(note)
    try:
        reply = await host.handler.handle(call("echo", {"text": "hello"}, id=2), peer)
    finally:
        sys.setprofile(None)
    assert reply is not None
    assert b'"text":"hello"' in reply
    return ran


async def test_the_other_tool_has_them_all() -> None:
    """The other tool has a layer for each policy, so that these tests can fail."""
    async with host_of(ELSEWHERE, Guarded()) as host:
        layers = [type_of_layer(layer).__name__ for layer in bound(host, "guarded").layers]
    policies = (IdempotencyLayer, ApprovalLayer, ConcurrencyLayer, BreakerLayer, RetryLayer)
    assert layers == [QuotaLayer.__name__, "validation", "timeout", *(one.__name__ for one in policies)]


async def test_other_policies_are_not_wrapped() -> None:
    """A tool without policies has only validation and a deadline."""
    async with host_of({}) as bare, host_of(ELSEWHERE, Guarded()) as guarded:
        plain, beside = bound(bare, "echo"), bound(guarded, "echo")
        assert [type_of_layer(layer).__name__ for layer in beside.layers] == ["validation", "timeout"]
        assert composition(beside.invoke) == composition(plain.invoke)
        assert len(composition(plain.invoke)) == 3
        assert len(composition(bound(guarded, "guarded").invoke)) > 3


@pytest.mark.parametrize("policy", [*ELSEWHERE, "all"])
async def test_a_call_runs_the_same_functions(policy: str) -> None:
    """A call of a tool without policies runs the same functions as on a server without policies."""
    settings = ELSEWHERE if policy == "all" else {policy: ELSEWHERE[policy]}
    async with host_of({}) as bare, host_of(settings, Guarded()) as guarded:
        plain = await functions_of_a_call(bare)
        assert await functions_of_a_call(guarded) == plain
        assert len(plain) > 5


@pytest.mark.parametrize(
    "settings",
    [
        {"authorization": {"default": "allow"}},
        {"quotas": {"rules": {"all": {"rate_per_second": 100}}}},
        {"limits": {"max_concurrency": 5}},
        {"toolsets": {"plain": {"max_concurrency": 5}}},
        {"approval": {"tools": ["echo"]}},
    ],
    ids=lambda said: next(iter(said)),
)
async def test_a_policy_of_the_tool_is_counted(settings: Mapping[str, Any]) -> None:
    """A policy for the tool changes the recorded functions."""
    async with host_of({}) as bare, host_of(settings) as guarded:
        assert composition(bound(guarded, "echo").invoke) != composition(bound(bare, "echo").invoke)


def bound(host: ServerHost, name: str) -> Any:
    """Return the binding of a tool."""
    return next(binding for binding in host.assembly.tools.bindings() if binding.spec.name == name)
