"""Denied calls in records and tasks."""

from collections.abc import Mapping
from typing import Any

import pytest

from axolotl_core import Principal, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.access import Decision, IAuthorizer, decision_behind
from axolotl_server.calls.binding import Layers
from axolotl_server.hosting import assembly
from axolotl_server.hosting.layer_stack import layer_stack
from tests.support.servers.restricted_servers import ADA, GUESTS, offering, speaking

ERAS = pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
KNOWS_TASKS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@tool(task_support="optional")
async def toil() -> str:
    """Work for long."""
    return "worked"


class Recording(ILayer):
    """A layer that records how calls end."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str | None]] = []

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:

        async def noted(call: Call) -> Any:
            try:
                return await call_next(call)
            except Exception as error:
                decision = decision_behind(error)
                self.notes.append((spec.kind, spec.name, None if decision is None else decision.rule))
                raise

        return noted


@ERAS
@pytest.mark.parametrize("denied_as", ["forbidden", "not_found"])
async def test_denials_are_recorded(denied_as: str, handshake: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outer layer sees each denial once, with the deciding rule, whatever the caller is told."""
    recording = Recording()

    def with_recording(made: assembly.ServerAssembly) -> Layers:
        outer, inner = layer_stack(made)
        return Layers((recording, *outer), inner)

    monkeypatch.setattr(assembly, "layer_stack", with_recording)
    rules = [*GUESTS["rules"], {"name": "no gold", "effect": "deny", "what": {"names": ["vault*"]}}]
    async with speaking({"rules": rules, "denied_as": denied_as}, ADA, handshake=handshake) as speaker:
        await speaker.ask("tools/call", {"name": "refund", "arguments": "wrong"})
        await speaker.ask("tools/call", {"name": "look", "arguments": {}})
        await speaker.ask("resources/read", {"uri": "vault://gold"})
        await speaker.ask("prompts/get", {"name": "grieve"})
        await speaker.ask("prompts/get", {"name": "grief"})
        completion = {"ref": {"type": "ref/prompt", "name": "grieve"}, "argument": {"name": "x", "value": ""}}
        await speaker.ask("completion/complete", completion)
    assert recording.notes == [
        ("tool", "refund", "default"),
        ("resource", "vault://{name}", "no gold"),
        ("prompt", "grieve", "default"),
        ("completion", "grieve", "default"),
    ]


class NotTheSecond(IAuthorizer):
    """Denies only the second request."""

    def __init__(self) -> None:
        self.asked = 0

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        self.asked += 1
        return Decision(self.asked != 2, "not the second")


@pytest.mark.parametrize("authorizer", [None, NotTheSecond()])
async def test_a_task_is_decided_on_when_it_runs(authorizer: IAuthorizer | None) -> None:
    """A task is authorized when it runs, whatever was decided when it was created."""
    meta = {"io.modelcontextprotocol/clientCapabilities": KNOWS_TASKS}
    container = offering(tools=[toil], authorizer=authorizer)
    async with speaking({} if authorizer else {"default": "allow"}, ADA, container=container) as speaker:
        begun = await speaker.ask("tools/call", {"name": "toil", "arguments": {}, "_meta": meta})
        wanted = {"taskId": begun["result"]["taskId"], "_meta": meta}
        while (task := (await speaker.ask("tasks/get", wanted))["result"])["status"] == "working":
            pass
    if authorizer is None:
        assert task["result"]["content"][0]["text"] == "worked"
    else:
        assert (task["status"], task["error"]["message"]) == ("failed", "Tool not found: toil")
