"""Questions in rounds, for the stateless era."""

import asyncio
import json
import random
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from axolotl_core import Context, ITool, Principal, resource, tool
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY
from axolotl_server import ServerHost
from axolotl_server.calls.sealing import MAX_TOKEN_LENGTH
from tests.support.peers.memory_peer import ABLE, ACCEPTED, Peer, container_with, conversing, text_of
from tests.support.peers.wire import META, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, serving
from tests.support.tools import Name, ask_name

KEYS = {"protocol": {"state_keys": ["a secret of at least sixteen characters"]}}


@tool
async def group(context: Context) -> str:
    """Ask in a task group."""
    async with asyncio.TaskGroup() as tasks:
        one = tasks.create_task(context.ask(Name, "One?", key="one"))
        two = tasks.create_task(context.ask(Name, "Two?", key="two"))
    return f"{one.result().name} {two.result().name}"


@tool(execution="thread")
async def threaded(context: Context) -> str:
    """Ask several questions at once from a thread."""
    answers = await asyncio.gather(*(context.ask(Name, f"{number}?", key=f"k{number}") for number in range(5)))
    return " ".join(answer.name for answer in answers)


@resource("secrets://one")
async def secret(context: Context) -> str:
    """Ask before something is read."""
    return (await context.ask(Name, "Who?")).name


def given(*keys: str, **answers: Any) -> Mapping[str, Any]:
    return {**dict.fromkeys(keys, ACCEPTED), **answers}


async def begun(peer: Peer, name: str = "ask_name", arguments: Mapping[str, Any] | None = None) -> Any:
    """Call a tool up to its first question and return the result."""
    result = (await peer.ask("tools/call", {"name": name, "arguments": arguments or {}}))["result"]
    assert result["resultType"] == "input_required"
    return result


async def again(peer: Peer, result: Any, responses: Mapping[str, Any], name: str = "ask_name", **params: Any) -> Any:
    """Repeat the request with answers."""
    return await peer.ask(
        "tools/call",
        {"name": name, "inputResponses": responses, "requestState": result["requestState"], **params},
        id=2,
    )


async def test_another_instance_can_go_on() -> None:
    """Servers with a shared key can continue each other's rounds, without stored state."""
    async with (
        conversing(container_with((ask_name,)), settings=KEYS) as first,
        conversing(container_with((ask_name,)), settings=KEYS) as second,
    ):
        result = await begun(Peer(first))
        assert text_of(await again(Peer(second), result, given("ask-1"))) == "Ann"


async def test_without_a_key_no_other_instance_can() -> None:
    """A server without a configured key generates its own."""
    async with conversing(container_with((ask_name,))) as first, conversing(container_with((ask_name,))) as second:
        reply = await again(Peer(second), await begun(Peer(first)), given("ask-1"))
        assert reply["error"]["code"] == -32602


async def test_a_state_belongs_to_whom_it_was_given() -> None:
    """A state cannot be used by another principal."""
    ann, eve = Principal("ann"), Principal("eve")
    async with conversing(container_with((ask_name,))) as host:
        result = await begun(Peer(host, principal=ann))
        assert (await again(Peer(host, principal=eve), result, given("ask-1")))["error"]["code"] == -32602
        assert (await again(Peer(host), result, given("ask-1")))["error"]["code"] == -32602
        assert text_of(await again(Peer(host, principal=ann), result, given("ask-1"))) == "Ann"


async def test_a_state_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state expires."""
    monkeypatch.setattr("axolotl_server.hosting.assembly.TTL_SECONDS", 1e-9)
    async with conversing(container_with((ask_name,))) as host:
        reply = await again(Peer(host), await begun(Peer(host)), given("ask-1"))
        assert reply["error"]["code"] == -32602


async def test_a_task_group_asks_once() -> None:
    """Questions of a task group form one round."""
    async with conversing(container_with((group,))) as host:
        peer = Peer(host)
        result = await begun(peer, "group")
        assert result["inputRequests"].keys() == {"one", "two"}
        assert text_of(await again(peer, result, given("one", "two"), "group")) == "Ann Ann"


async def test_a_thread_asks_everything_at_once() -> None:
    """Questions of a thread that are asked together form one round."""
    async with conversing(container_with((threaded,))) as host:
        peer = Peer(host)
        for _ in range(30):
            result = await begun(peer, "threaded")
            assert len(result["inputRequests"]) == 5
            keys = result["inputRequests"].keys()
            assert text_of(await again(peer, result, given(*keys), "threaded")) == "Ann Ann Ann Ann Ann"


class Plan(BaseModel):
    steps: list[int]


class Interview(ITool[Plan, str]):
    """Asks a given number of questions per step."""

    name = "interview"

    async def execute(self, arguments: Plan, context: Context) -> str:
        names = []
        for step, number in enumerate(arguments.steps):
            asked = [context.ask(Name, f"{step}.{place}?") for place in range(number)]
            names += [answer.name for answer in await asyncio.gather(*asked)]
        return ",".join(names)


@pytest.mark.parametrize("seed", range(20))
async def test_every_answer_arrives_in_its_place(seed: int) -> None:
    """In any number of rounds, with missing and extra answers, each question gets its own answer."""
    chance = random.Random(seed)
    plan = {"steps": [chance.randrange(4) for _ in range(chance.randrange(1, 5))]}
    async with conversing(container_with((Interview(),))) as host:
        peer = Peer(host)
        expected: dict[str, str] = {}
        params: dict[str, Any] = {}
        while True:
            reply = await peer.ask("tools/call", {"name": "interview", "arguments": plan, **params})
            if reply["result"]["resultType"] == "complete":
                break
            asked = list(reply["result"]["inputRequests"])
            assert not expected.keys() & asked, "what was answered is not asked again"
            chosen = {key: f"{key}/{chance.random()}" for key in asked if chance.random() < 0.6}
            expected |= chosen
            responses = {key: {"action": "accept", "content": {"name": name}} for key, name in chosen.items()}
            responses["nobody"] = {"action": "decline"}
            params = {"inputResponses": responses, "requestState": reply["result"]["requestState"]}
        names = [expected[f"ask-{number}"] for number in range(1, sum(plan["steps"]) + 1)]
        assert text_of(reply) == (",".join(names) if names else "")


async def test_answers_may_be_too_large() -> None:
    """Answers that do not fit into a state are an error for the model."""
    async with conversing(container_with((Interview(),))) as host:
        peer = Peer(host)
        arguments = {"steps": [1, 1]}
        result = await begun(peer, "interview", arguments)
        long = {"ask-1": {"action": "accept", "content": {"name": "x" * MAX_TOKEN_LENGTH}}}
        reply = await again(peer, result, long, "interview", arguments=arguments)
        assert reply["result"]["isError"]
        assert "too large" in text_of(reply)


async def test_nothing_is_kept_of_a_round() -> None:
    """The server keeps nothing of an abandoned round."""
    async with conversing(container_with((ask_name,), resources=(secret,))) as host:
        peer = Peer(host)
        await begun(peer)
        await peer.ask("resources/read", {"uri": "secrets://one"})
        assert not peer.connection.pending_answers
        assert not peer.connection.calls
        assert not host.handler.inflight
        assert await peer.close() == []


async def test_statuses_over_http() -> None:
    """A round is a plain reply, a missing capability is status 400, and an invalid state is an error in the body."""
    container = container_with((ask_name,), resources=(secret,))
    async with serving(container) as server, httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http:

        async def post(capabilities: Mapping[str, Any], **params: Any) -> httpx2.Response:
            meta = {**META, CLIENT_CAPABILITIES_KEY: capabilities}
            body = message("tools/call", {"name": "ask_name", **params, "_meta": meta})
            return await http.post(server.url, content=body, headers=mirrored(name="ask_name"))

        asked = await post(ABLE)
        assert (asked.status_code, asked.headers["content-type"]) == (200, "application/json")
        state = asked.json()["result"]["requestState"]
        refused = await post({})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32021)
        wrong = await post(ABLE, requestState=state[::-1])
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (200, -32602)
        done = await post(ABLE, requestState=state, inputResponses=given("ask-1"))
        assert (done.status_code, text_of(done.json())) == (200, "Ann")


async def test_a_round_ends_a_stream() -> None:
    """If other messages were sent before, the questions are the last event of the stream."""

    @tool
    async def busy(context: Context) -> str:
        """Speak, then ask."""
        context.report_progress(1)
        return (await context.ask(Name, "Who?")).name

    meta = {**META, CLIENT_CAPABILITIES_KEY: ABLE, "progressToken": 1}
    body = message("tools/call", {"name": "busy", "_meta": meta})
    async with serving(container_with((busy,))) as server, httpx2.AsyncClient(verify=False) as http:
        reply = await http.post(server.url, content=body, headers=mirrored(name="busy"), timeout=PATIENCE_SECONDS)
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    assert [event.get("method") for event in events] == ["notifications/progress", None]
    assert events[-1]["result"]["resultType"] == "input_required"


async def test_both_ways_of_asking_live_on_one_connection() -> None:
    """On one connection, requests with and without an envelope are asked in their own way."""
    async with conversing(container_with((ask_name,))) as host:
        peer = await Peer(host).shake_hands()
        peer.call("ask_name", id=1)
        question = await peer.receive()
        assert question["method"] == "elicitation/create"
        peer.call("ask_name", id=2, **{**META, CLIENT_CAPABILITIES_KEY: ABLE})
        assert (await peer.receive())["result"]["resultType"] == "input_required"
        peer.answer(question, ACCEPTED)
        assert (await peer.receive())["id"] == 1


async def test_a_stateless_request_does_not_inherit_capabilities() -> None:
    """Capabilities of the handshake do not apply to stateless requests."""
    async with ServerHost(container_with((ask_name,))) as host:
        peer = await Peer(host).shake_hands()
        peer.call("ask_name", id=2, **META)
        assert (await peer.receive())["error"]["code"] == -32021
