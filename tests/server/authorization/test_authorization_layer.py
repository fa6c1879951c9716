"""The authorization layer, with and without an earlier decision of the guard."""

from typing import Any

import pytest

from axolotl_core import Forbidden, Principal, ResourceNotFound
from axolotl_core.calls.caller import NOBODY
from axolotl_core.errors import InvalidParams, MethodNotFound, PromptNotFound, ToolNotFound
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call
from axolotl_core.policies.access import Decision, IAuthorizer, decision_behind
from axolotl_server.access.authorization import Authorization, GuardVerdict
from axolotl_server.features.completion import CompletionFeature
from axolotl_server.protocol.request import Request
from axolotl_server.settings.policies import AuthorizationSettings
from tests.support.servers.restricted_servers import ADA, PLAIN, greet, look, refund, spec_of, vault


class Saying(IAuthorizer):
    """Always returns the same decision."""

    def __init__(self, allowed: Any) -> None:
        self._decision = Decision(allowed, "always")

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        return self._decision


class Stopped:
    """A cancellation that never happens."""

    def cancel(self) -> None:
        """Do nothing."""


def authorization_saying(allowed: Any, **said: Any) -> Authorization:
    return Authorization(Saying(allowed), AuthorizationSettings.model_validate(said))


async def run(authorization: Authorization, spec: FeatureSpec, caller: Any = NOBODY) -> Any:
    """Call a feature that returns its name."""

    async def innermost(call: Call) -> str:
        return call.spec.name

    invoke = authorization.wrap(spec, innermost)
    return await invoke(Call(1, caller, ADA, uri="vault://gold", spec=spec, raw=b"{}", task=Stopped()))


async def test_an_allowed_call_passes() -> None:
    """An allowed call reaches the code."""
    assert await run(authorization_saying(True), spec_of(look)) == "look"


COMPLETING = FeatureSpec(CompletionFeature(greet, spec_of(greet)), "completion", "greet", PLAIN, None)
METHOD = FeatureSpec(look, "extension", "receipts/print", PLAIN, None)


@pytest.mark.parametrize("allowed", [False, "yes", 1, None])
@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (spec_of(look), ToolNotFound),
        (spec_of(greet), PromptNotFound),
        (spec_of(vault), ResourceNotFound),
        (COMPLETING, InvalidParams),
        (METHOD, MethodNotFound),
    ],
)
async def test_a_call_that_is_not_allowed_fails(spec: FeatureSpec, error: type[Exception], allowed: Any) -> None:
    """A call that is not explicitly allowed fails with the decision, as configured."""
    with pytest.raises(error) as hidden:
        await run(authorization_saying(allowed), spec)
    with pytest.raises(Forbidden) as told:
        await run(authorization_saying(allowed, denied_as="forbidden"), spec)
    for caught in (hidden, told):
        decision = decision_behind(caught.value)
        assert decision is not None
        assert decision.rule == "always"
    assert "always" not in f"{hidden.value}{told.value}{told.value.meta}"


def request_with(verdict: GuardVerdict) -> Request:
    """Create a request with a decision of the guard."""
    nothing: Any = None
    return Request(nothing, b"", nothing, nothing, None, verdict=verdict)


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_verdict_is_for_one_feature(allowed: bool) -> None:
    """A decision about one feature does not apply to another."""
    authorization = authorization_saying(allowed)
    judged = request_with(GuardVerdict(spec_of(refund), ToolNotFound("refund") if allowed else None))
    if allowed:
        assert await run(authorization, spec_of(look), judged) == "look"
    else:
        with pytest.raises(ToolNotFound, match="look"):
            await run(authorization, spec_of(look), judged)


async def test_a_verdict_is_taken() -> None:
    """A feature with a decision is not decided on again."""
    authorization, spec, denial = authorization_saying(True), spec_of(look), ToolNotFound("LOOK")
    with pytest.raises(ToolNotFound) as caught:
        await run(authorization, spec, request_with(GuardVerdict(spec, denial)))
    assert caught.value is denial
