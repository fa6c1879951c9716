"""Custom authorizers: used everywhere, once per call and with a timeout; failures deny."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.access import Decision, IAuthorizer
from axolotl_server import ServerHost
from axolotl_server.access.rules import DefaultAuthorizer
from axolotl_server.settings.policies import AuthorizationSettings
from tests.support.servers.restricted_servers import ADA, ROOT, Speaker, offering, speaking

ERAS = pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
CALL = {"name": "look", "arguments": {}}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only briefly for an authorizer."""
    monkeypatch.setattr("axolotl_server.access.authorization.TIMEOUT_SECONDS", 0.05)


class Deciding(IAuthorizer):
    """Decides with a function and records its arguments."""

    def __init__(self, decide: Callable[[Principal, FeatureSpec], Awaitable[Any]]) -> None:
        self._decide = decide
        self.asked: list[tuple[str, str, str]] = []

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        self.asked.append((principal.subject, spec.kind, spec.name))
        decision: Decision = await self._decide(principal, spec)
        return decision


async def by_letter(principal: Principal, spec: FeatureSpec) -> Decision:
    """Allow features whose name contains the first letter of the principal, after a delay."""
    await asyncio.sleep(0)
    return Decision(principal.subject[0] in spec.name, "letters")


@ERAS
async def test_it_decides_on_lists_and_calls(handshake: bool) -> None:
    """The container's authorizer decides on lists and calls, once per call."""
    authorizer = Deciding(by_letter)
    async with ServerHost(offering(authorizer=authorizer)) as host:
        speaker = Speaker(host, ROOT)
        if handshake:
            await speaker.shake_hands()
        assert await speaker.listed("tools") == ["refund", "refurbish"]
        assert len(authorizer.asked) == 4
        authorizer.asked.clear()
        called = await speaker.ask("tools/call", {"name": "REFUND", "arguments": {"amount": 1}})
        assert called["result"]["content"][0]["text"] == "paid 1"
        assert authorizer.asked == [("root", "tool", "refund")]
        authorizer.asked.clear()
        completion = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}}
        assert "result" in await speaker.ask("completion/complete", completion)
        assert authorizer.asked == [("root", "prompt", "greet")], "to complete it is to use it"
        for name in ("look", "refun"):
            authorizer.asked.clear()
            reply = await speaker.ask("tools/call", {"name": name, "arguments": {}})
            assert reply["error"]["message"] == f"Tool not found: {name}"
            assert len(authorizer.asked) == 1, "what is denied takes as long as what is not there"
        await speaker.close()


async def fail(principal: Principal, spec: FeatureSpec) -> Decision:
    raise RuntimeError("the secret of the policy")


async def leave(principal: Principal, spec: FeatureSpec) -> Decision:
    raise SystemExit(3)


async def cancel_itself(principal: Principal, spec: FeatureSpec) -> Decision:
    raise asyncio.CancelledError


async def hang(principal: Principal, spec: FeatureSpec) -> Decision:
    await asyncio.Event().wait()
    raise AssertionError


async def hang_on(principal: Principal, spec: FeatureSpec) -> Decision:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.Event().wait()  # until the loop ends
    raise AssertionError


async def say_nothing(principal: Principal, spec: FeatureSpec) -> Any:
    return None


async def say_yes(principal: Principal, spec: FeatureSpec) -> Any:
    return True


async def say_it_loosely(principal: Principal, spec: FeatureSpec) -> Any:
    return Decision("no", "loose")  # type: ignore[arg-type]


FAULTY = pytest.mark.parametrize(
    "decide", [fail, leave, cancel_itself, hang, hang_on, say_nothing, say_yes], ids=lambda one: one.__name__
)


@FAULTY
@ERAS
async def test_a_failure_is_a_denial(decide: Any, handshake: bool, caplog: pytest.LogCaptureFixture) -> None:
    """An authorizer that fails or times out denies; the caller gets a reference, the log the details."""
    container = offering(authorizer=Deciding(decide))
    async with speaking({"denied_as": "forbidden"}, ADA, handshake=handshake, container=container) as speaker:
        called = (await speaker.ask("tools/call", CALL))["result"]
        read = (await speaker.ask("resources/read", {"uri": "notes://open"}))["error"]
        listed = (await speaker.ask("tools/list"))["error"]
    assert called["isError"]
    reference = called["_meta"]["axolotl/reference"]
    assert called["_meta"]["axolotl/reason"] == "forbidden"
    assert reference in called["content"][0]["text"]
    references = [reference, read["data"]["reference"], listed["data"]["reference"]]
    assert all(f"reference {one}" in caplog.text for one in references)
    assert "secret" not in str((called, read, listed))
    assert listed["message"] == f"Internal error. Reference: {references[2]}"


@FAULTY
@ERAS
async def test_a_failure_hides_like_a_denial(decide: Any, handshake: bool) -> None:
    """If denied features are hidden, failures hide them too."""
    container = offering(authorizer=Deciding(decide))
    async with speaking({}, ADA, handshake=handshake, container=container) as speaker:
        for name in ("look", "pudding"):
            reply = await speaker.ask("tools/call", {"name": name, "arguments": {}})
            assert reply["error"]["message"] == f"Tool not found: {name}"
        reply = await speaker.ask("resources/read", {"uri": "notes://open"})
        assert reply["error"]["message"] == "Resource not found: notes://open"


async def test_only_true_is_true() -> None:
    """Any decision that is not explicitly allowed is denied, in calls and lists."""
    async with speaking({}, ADA, container=offering(authorizer=Deciding(say_it_loosely))) as speaker:
        assert await speaker.listed("tools") == []
        assert "error" in await speaker.ask("tools/call", CALL)


@ERAS
async def test_a_request_can_be_canceled_during_a_decision(handshake: bool) -> None:
    """A request that is canceled during a decision does not run and gets no reply."""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def think(principal: Principal, spec: FeatureSpec) -> Decision:
        asked.set()
        await answer.wait()
        return Decision(True, "late")

    async with speaking({}, ADA, handshake=handshake, container=offering(authorizer=Deciding(think))) as speaker:
        speaker.send("tools/call", CALL, id="first")
        await asked.wait()
        speaker.send("tools/call", CALL, id="second")
        speaker.cancel("first")
        await asyncio.sleep(0)
        answer.set()
        reply = await speaker.receive()
        assert reply["id"] == "second"
        assert reply["result"]["content"][0]["text"] == "saw "
        assert (await speaker.ask("tools/call", {"name": "pudding"}))["error"], "the first one is never answered"


async def test_a_shutdown_while_it_thinks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is undecided when the connection ends is answered and does not run."""
    asked = asyncio.Event()

    async def think(principal: Principal, spec: FeatureSpec) -> Decision:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("axolotl_server.access.authorization.TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr("axolotl_server.transports.stream_exchange._STOP_GRACE_SECONDS", 30.0)
    async with ServerHost(offering(authorizer=Deciding(think)), flags={"authorization": {}}) as host:
        speaker = Speaker(host, ADA)
        speaker.send("tools/call", CALL, id=1)
        await asked.wait()
        (reply,) = await speaker.close(0)
    assert "The server is shutting down" in str(reply)


class NeverOnSundays(DefaultAuthorizer):
    """Adds a rule to the standard policy."""

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        if "money" in spec.feature.tags:
            return Decision(False, "Sunday")
        return await super().decide(principal, spec)


async def test_a_policy_may_be_extended() -> None:
    """A subclass of the standard policy applies to lists and calls."""
    policy = NeverOnSundays(AuthorizationSettings(default="allow"))
    async with speaking({"denied_as": "forbidden"}, ADA, container=offering(authorizer=policy)) as speaker:
        assert await speaker.listed("tools") == ["look", "note", "refurbish"]
        reply = await speaker.ask("tools/call", {"name": "refund", "arguments": {"amount": 1}})
        assert reply["result"]["isError"]
        assert "result" in await speaker.ask("tools/call", CALL)
