"""Tools that need a person's approval, in both eras."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from dependency_injector import providers
from pydantic import BaseModel

from axolotl_core import Context, ITool, NoArguments, Principal, ToolAnnotations
from axolotl_core.policies.tool_rules import Approval
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from axolotl_server.audit.redaction import redactor
from axolotl_server.client.replies import CANCEL, DECLINE, Question
from axolotl_server.layers.approval import ApprovalDemand, ApprovalLayer
from axolotl_server.layers.approval_question import ApprovalForm
from tests.support.audited_calls import MemorySink
from tests.support.peers.layer_calls import ASKABLE, spec_of
from tests.support.peers.memory_peer import Peer
from tests.support.tools import container_of

YES = {"action": "accept", "content": {"approve": True}}
NO = {"action": "accept", "content": {"approve": False}}
KEY = "axolotl/approval"


class Target(BaseModel):
    path: str = "/"
    approve: bool = False


class Delete(ITool[Target, str]):
    """Counts its runs."""

    name = "delete"
    requires_approval = True

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def execute(self, arguments: Target, context: Context) -> str:
        self.deleted.append(arguments.path)
        return "deleted"


def server_with(tool: ITool[Any, Any], required_for: ApprovalDemand = "declared") -> Any:
    return container_of(tool, settings={"approval": {"required_for": required_for}})


async def test_a_yes_lets_the_tool_run() -> None:
    """The user is asked once per call, and then the tool runs once."""
    tool, asked = Delete(), []

    def answer(question: Question) -> ApprovalForm:
        asked.append(question.message)
        return ApprovalForm(approve=True)

    async with connect(server_with(tool), answer=answer) as client:
        for path in ("/a", "/b", "/a"):
            assert (await client.call("delete", {"path": path})).text == "deleted"
    assert tool.deleted == ["/a", "/b", "/a"]
    assert asked == [f'Do you approve this call?\nTool: delete\npath: "{path}"' for path in ("/a", "/b", "/a")]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL, NO])
async def test_no_answer_but_yes_will_do(answer: Mapping[str, Any]) -> None:
    """If the user declines, cancels or says no, the tool does not run, and the model gets an error."""
    tool = Delete()
    async with connect(server_with(tool), answer=lambda _: answer) as client:
        refused = await client.call("delete", {"path": "/"})
    assert refused.is_error
    assert refused.text.endswith("; it did not run")
    assert refused.meta["axolotl/reason"] == "not_approved"
    assert tool.deleted == []


async def test_a_client_without_elicitation_gets_an_error() -> None:
    """A client without elicitation gets an error for the model."""
    tool = Delete()
    async with connect(server_with(tool)) as client:
        refused = await client.call("delete", {"path": "/"})
    assert (refused.is_error, refused.meta["axolotl/reason"], tool.deleted) == (True, "approval_unavailable", [])


async def test_an_argument_cannot_approve() -> None:
    """Arguments of the tool cannot give the approval."""
    tool = Delete()
    async with connect(server_with(tool), answer=lambda _: DECLINE) as client:
        assert (await client.call("delete", {"path": "/", "approve": True})).is_error
        params = {"name": "delete", "arguments": {}, "approve": True, "_meta": {"approve": True, KEY: YES}}
        assert (await client.request("tools/call", params))["isError"] is True
    assert tool.deleted == []


async def rounds(client: InProcessClient, **more: Any) -> Any:
    return await client.request("tools/call", {"name": "delete", "arguments": {"path": "/x"}, **more})


async def test_an_answer_before_the_question_does_not_count() -> None:
    """An answer that comes before its question is ignored, and the question is asked."""
    tool = Delete()
    async with connect(server_with(tool), capabilities=ASKABLE) as client:
        first = await rounds(client, inputResponses={KEY: YES, "ask-1": YES})
        assert list(first["inputRequests"]) == [KEY]
        assert tool.deleted == []
        again = await rounds(client, inputResponses={KEY: YES})
        assert again["resultType"] == "input_required"
        last = await rounds(client, inputResponses={KEY: YES}, requestState=first["requestState"])
        assert (last["content"][0]["text"], tool.deleted) == ("deleted", ["/x"])


async def test_an_approval_cannot_be_moved() -> None:
    """The state with an approval is valid only for the same arguments and principal."""
    tool = Delete()
    async with ServerHost(server_with(tool)) as host:
        client = InProcessClient(host.handler, capabilities=ASKABLE)
        asked = await rounds(client)
        answered = {"inputResponses": {KEY: YES}, "requestState": asked["requestState"]}
        with pytest.raises(RemoteError, match="request state"):
            await rounds(client, arguments={"path": "/home"}, **answered)
        other = InProcessClient(host.handler, Principal("mallory"), capabilities=ASKABLE)
        with pytest.raises(RemoteError, match="request state"):
            await rounds(other, **answered)
        assert tool.deleted == []
        await client.close()
        await other.close()


async def test_an_answer_without_sense_is_asked_for_again() -> None:
    """In the stateless era, an invalid answer leaves the question open."""
    tool = Delete()
    answers: Iterator[Mapping[str, Any]] = iter([{"approve": "perhaps"}, {}, {"approve": True}])
    async with connect(server_with(tool), answer=lambda _: next(answers)) as client:
        assert (await client.call("delete", {"path": "/x"})).text == "deleted"
    assert next(answers, None) is None


class Ask(BaseModel):
    word: str


class Curious(ITool[NoArguments, str]):
    """Asks its own question."""

    name = "curious"
    requires_approval = Approval("Shall it be curious?")

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        first = await context.ask(Ask, "A word?")
        second = await context.ask(Ask, "Another?")
        return f"{first.word} {second.word}"


async def test_a_tools_own_questions_keep_their_names() -> None:
    """The approval comes first, is kept in all rounds, and does not change the keys of other questions."""
    keys: list[str] = []

    def answer(question: Question) -> Mapping[str, Any]:
        keys.append(question.key)
        return {"approve": True} if question.key == KEY else {"word": question.key}

    async with connect(server_with(Curious()), answer=answer) as client:
        assert (await client.call("curious")).text == "ask-1 ask-2"
    assert keys == [KEY, "ask-1", "ask-2"]


async def test_a_late_no_does_not_become_a_yes() -> None:
    """A later answer to an answered question changes nothing, in this round or another."""
    async with connect(server_with(Curious()), capabilities=ASKABLE) as client:
        params: dict[str, Any] = {"name": "curious", "arguments": {}}
        asked = await client.request("tools/call", params)
        for key in (KEY, "ask-1"):
            given = {key: YES if key == KEY else {"action": "accept", "content": {"word": "x"}}}
            unasked = {} if key == KEY else {KEY: DECLINE}
            responses = {"inputResponses": {**given, **unasked}, "requestState": asked["requestState"]}
            asked = await client.request("tools/call", {**params, **responses})
        assert list(asked["inputRequests"]) == ["ask-2"]
        responses = {
            "inputResponses": {"ask-2": {"action": "accept", "content": {"word": "y"}}},
            "requestState": asked["requestState"],
        }
        last = await client.request("tools/call", {**params, **responses})
        assert last["content"][0]["text"] == "x y"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (YES, None),
        (NO, "not_approved"),
        (DECLINE, "not_approved"),
        (CANCEL, "not_approved"),
        ({"action": "accept"}, "approval_unavailable"),
    ],
)
async def test_with_a_handshake(answer: Mapping[str, Any], reason: str | None) -> None:
    """In the handshake era the server asks while the call waits, and only a yes approves."""
    tool = Delete()
    async with ServerHost(server_with(tool)) as host:
        client = Peer(host, capabilities={"elicitation": {}})
        await client.shake_hands()
        client.call("delete", {"path": "/x"})
        question = await client.receive()
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"].endswith('path: "/x"')
        assert question["params"]["requestedSchema"]["required"] == ["approve"]
        assert tool.deleted == []
        client.answer(question, answer)
        reply = (await client.receive())["result"]
        assert reply.get("_meta", {}).get("axolotl/reason") == reason
        assert tool.deleted == ([] if reason else ["/x"])
        await client.close()


async def test_a_client_with_a_handshake_that_cannot_ask() -> None:
    """A client that did not declare elicitation in its handshake is rejected."""
    tool = Delete()
    async with ServerHost(server_with(tool)) as host:
        client = Peer(host, capabilities={})
        await client.shake_hands()
        client.call("delete")
        reply = (await client.receive())["result"]
        assert (reply["isError"], reply["_meta"]["axolotl/reason"]) == (True, "approval_unavailable")
        assert tool.deleted == []
        await client.close()


async def test_an_unanswered_question_is_a_no() -> None:
    """An unanswered question counts as a no."""
    tool = Delete()
    settings = {"limits": {"ask_timeout_seconds": 0.01}}
    async with ServerHost(server_with(tool), flags=settings) as host:
        client = Peer(host, capabilities={"elicitation": {}})
        await client.shake_hands()
        client.call("delete")
        await client.receive()
        messages = [await client.receive(), await client.receive()]
        reply = next(said["result"] for said in messages if "result" in said)
        assert (reply["isError"], reply["_meta"]["axolotl/reason"], tool.deleted) == (True, "not_approved", [])
        await client.close()


def tool_that_says(**annotations: Any) -> Delete:
    tool = Delete()
    tool.requires_approval = False
    tool.annotations = ToolAnnotations(**annotations)
    return tool


@pytest.mark.parametrize(
    ("required_for", "annotations", "asked"),
    [
        ("declared", {"destructive": True}, False),
        ("destructive", {"destructive": True}, True),
        ("destructive", {}, False),
        ("destructive", {"destructive": False}, False),
        ("not_read_only", {}, True),
        ("not_read_only", {"destructive": False}, True),
        ("not_read_only", {"read_only": True}, False),
    ],
)
async def test_operators_demand_approval(
    required_for: ApprovalDemand, annotations: Mapping[str, Any], asked: bool
) -> None:
    """An operator can require approval for tools by their annotations."""
    questions: list[str] = []

    def answer(question: Question) -> Mapping[str, Any]:
        questions.append(question.key)
        return {"approve": True}

    async with connect(server_with(tool_that_says(**annotations), required_for), answer=answer) as client:
        assert (await client.call("delete")).text == "deleted"
    assert questions == [KEY] * asked


@pytest.mark.parametrize(
    ("tools", "asked"), [(("DEL*",), True), (("delete",), True), (("del", "x"), False), ((), False)]
)
def test_operators_name_tools(tools: tuple[str, ...], asked: bool) -> None:
    """An operator can require approval by name or pattern."""
    tool = tool_that_says(read_only=True)
    tool.name = "Delete"
    wrapped = ApprovalLayer(redactor, tools=tools).wrap(spec_of(tool), innermost)
    assert (wrapped is not innermost) is asked


async def innermost(call: Any) -> Any:
    return None


def test_other_tools_are_not_wrapped() -> None:
    """A tool without approval is not wrapped."""
    spec = spec_of(tool_that_says(destructive=True))
    assert ApprovalLayer(redactor).wrap(spec, innermost) is innermost
    assert ApprovalLayer(redactor, "destructive").wrap(spec, innermost) is not innermost


ANSWERS = [(YES, "accept"), (NO, "decline"), (DECLINE, "decline"), (CANCEL, "cancel")]


def audited(tool: ITool[Any, Any]) -> tuple[Any, MemorySink]:
    container, sink = server_with(tool), MemorySink()
    container.audit_sinks = providers.List(providers.Object(sink))
    return container, sink


def seen_in(sink: MemorySink) -> list[tuple[str, str | None, str | None]]:
    return [(one.event, one.key, one.action) for one in sink.records]


@pytest.mark.parametrize(("answer", "action"), ANSWERS)
async def test_an_answer_is_recorded(answer: Mapping[str, Any], action: str) -> None:
    """The audit log says what was answered in a round, once and before the tool runs."""
    container, sink = audited(Delete())
    async with connect(container, answer=lambda _: answer) as client:
        await client.call("delete", {"path": "/x"})
    runs = [("start", None, None)] if action == "accept" else []
    assert seen_in(sink) == [("end", None, None), ("answered", KEY, action), *runs, ("end", None, None)]
    asked, answered, *rest = sink.records
    assert asked.outcome == "input_required"
    assert (answered.kind, answered.name, answered.subject) == ("tool", "delete", "anonymous")
    assert {one.call_id for one in rest} == {answered.call_id}


@pytest.mark.parametrize(
    ("answer", "action"),
    [*ANSWERS, ({"action": "accept", "content": {"approve": "perhaps"}}, "decline"), (None, "refuse")],
)
async def test_an_answer_with_a_handshake_is_recorded(answer: Mapping[str, Any] | None, action: str) -> None:
    """So does that of a client with a handshake, also if the client refuses to ask."""
    container, sink = audited(Delete())
    async with ServerHost(container) as host:
        client = Peer(host, capabilities={"elicitation": {}})
        await client.shake_hands()
        client.call("delete", {"path": "/x"})
        question = await client.receive()
        if answer is None:
            refusal = {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32600, "message": "no"}}
            client.transport.send(json.dumps(refusal).encode())
        else:
            client.answer(question, answer)
        await client.receive()
        await client.close()
    runs = [("start", None, None)] if action == "accept" else []
    assert seen_in(sink) == [("answered", KEY, action), *runs, ("end", None, None)]
