"""The client over every channel and in every revision, against a server with every kind of feature."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from axolotl_core import Completion
from axolotl_core.protocol.messages import LOG_LEVEL_KEY
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, REVISIONS
from axolotl_core.questions.question import Root
from axolotl_server import Client, RemoteError, connect, connect_process, connect_url
from axolotl_server.client.channel import InvalidReply
from axolotl_server.client.replies import (
    ACCEPT,
    DECLINE,
    Answer,
    Answering,
    Change,
    Question,
    TaskCancelled,
    UnansweredQuestion,
)
from tests.support.clients.full_container import Container
from tests.support.clients.slow_tools import begun
from tests.support.commands import ROOT
from tests.support.servers.serving import PATIENCE_SECONDS, serving

NAMES = [revision.name for revision in REVISIONS]
OLDEST, LATEST = NAMES[0], NAMES[-1]
LAST_HANDSHAKE = HANDSHAKE_REVISIONS[-1].name
WAYS = [
    *(f"memory {name}" for name in NAMES),
    *(f"http {name}" for name in NAMES if name != OLDEST),
    pytest.param(f"process {LAST_HANDSHAKE}", marks=pytest.mark.slow),
    pytest.param(f"process {LATEST}", marks=pytest.mark.slow),
]
QUICK_WAYS = [way for way in WAYS if isinstance(way, str)]
WITH_FORMS = [way for way in WAYS if not isinstance(way, str) or way.split()[1] not in NAMES[:2]]


def revision_of(way: str) -> str:
    return way.split()[1]


@asynccontextmanager
async def connected(way: str, answer: Answering | None = None, **more: Any) -> AsyncIterator[Client]:
    kind, revision = way.split()
    more = {"answer": answer, "revision": revision, **more}
    async with asyncio.timeout(PATIENCE_SECONDS):
        if kind == "memory":
            async with connect(Container(), **more) as client:
                yield client
        elif kind == "http":
            async with serving(Container()) as server, connect_url(server.url, **more) as client:
                yield client
        else:
            target = "tests.support.clients.full_container:Container"
            command = [sys.executable, "-m", "axolotl_cli", "serve", target]
            async with connect_process(command, directory=ROOT, **more) as client:
                yield client


def answering(answers: Mapping[str, Answer], asked: list[Question] | None = None) -> Answering:
    def answer(question: Question) -> Answer:
        if asked is not None:
            asked.append(question)
        return answers[question.method]

    return answer


@pytest.mark.parametrize("way", WAYS)
async def test_everything_that_is_listed_can_be_used(way: str) -> None:
    """Tools, prompts, resources, templates and completions have the same results on every way."""
    async with connected(way) as client:
        assert client.revision == revision_of(way)
        described = await client.describe()
        assert (described.name, described.instructions) == ("features", "Try everything")
        assert {"tools", "prompts", "resources"} <= set(described.capabilities)
        assert {"book", "report"} <= {tool["name"] for tool in await client.list_tools()}
        assert (await client.call("report", {"city": "Oslo"})).text.startswith('{"city":"Oslo"')
        assert "review" in [one["name"] for one in await client.list_prompts()]
        assert (await client.get_prompt("review", {"language": "rust"})).text == "Review this rust code."
        assert "config://app" in [one["uri"] for one in await client.list_resources()]
        assert (await client.read_resource("config://app")).text == '{"debug":true}'
        assert len((await client.read_resource("logo://axolotl")).blobs) == 1
        assert "notes://{name}" in [one["uriTemplate"] for one in await client.list_resource_templates()]
        assert await client.complete("country", "p", prompt="trip") == Completion(["peru"], 195, True)


@pytest.mark.parametrize("way", WAYS)
async def test_refusals(way: str) -> None:
    """A refused request raises the error of the server."""
    async with connected(way) as client:
        with pytest.raises(RemoteError, match="repotr"):
            await client.call("repotr", {})
        with pytest.raises(RemoteError, match="notes://none"):
            await client.read_resource("notes://none")


@pytest.mark.parametrize("way", WAYS)
async def test_progress_and_log_messages(way: str) -> None:
    """Progress and log messages arrive in order, before the result."""
    progress: list[Any] = []
    log: list[Any] = []
    async with connected(way) as client:
        outcome = await client.call("climb", {"steps": 3, "total": 3}, on_progress=progress.append)
        assert outcome.text == "there"
        assert [one["progress"] for one in progress] == [1, 2, 3]
        await client.call("chatter", {}, meta={LOG_LEVEL_KEY: "error"}, on_log=log.append)
        assert {one["level"] for one in log} == {"error", "critical", "alert", "emergency"}


@pytest.mark.parametrize("way", WITH_FORMS)
async def test_questions(way: str) -> None:
    """Forms, pages, questions to a model and roots are answered by the callback."""
    asked: list[Question] = []
    answers: dict[str, Any] = {
        "elicitation/create": {"word": "soon"},
        "sampling/createMessage": "a model's text",
        "roots/list": [Root("file:///srv", "srv")],
    }
    async with connected(way, answering(answers, asked)) as client:
        assert (await client.call("insist")).text == "soon"
        assert (await client.call("step_by_step")).text == "soon soon"
        assert "a model's text" in (await client.call("summarise", {"text": "long"})).text
        assert (await client.call("workplaces")).text == '["srv: file:///srv"]'
        assert (await client.call("everything")).text == "soon, a model's text, 1 roots"
    assert {question.key for question in asked} >= {"ask-1", "sample-1", "roots-1"}


@pytest.mark.parametrize("way", WAYS)
async def test_pages_and_refused_answers(way: str) -> None:
    """A page is opened or declined; where the revision has no such question, the tool says so."""
    async with connected(way, answering({"elicitation/create": ACCEPT})) as client:
        outcome = await client.call("pay")
    if revision_of(way) >= LAST_HANDSHAKE:
        assert outcome.text == "on the way"
        async with connected(way, answering({"elicitation/create": DECLINE})) as client:
            assert (await client.call("pay")).text == "not paid: decline"
    else:
        assert outcome.is_error


@pytest.mark.parametrize("way", WITH_FORMS)
async def test_an_error_of_the_answer_is_raised(way: str) -> None:
    """What the callback raises is raised where the call is awaited, and the client stays usable."""

    def fail(question: Question) -> Answer:
        raise LookupError(question.message)

    async with connected(way, fail) as client:
        with pytest.raises(LookupError, match=r"A word\?"):
            await client.call("insist")
        assert (await client.call("report", {"city": "Oslo"})).text


@pytest.mark.parametrize("way", [f"memory {LAST_HANDSHAKE}", f"http {LATEST}"])
async def test_a_question_without_an_answer(way: str) -> None:
    """A client that announces what it cannot answer gets an error that names the question."""
    async with connected(way, capabilities={"elicitation": {"form": {}}}) as client:
        with pytest.raises(UnansweredQuestion, match="ask-1"):
            await client.call("insist")


@pytest.mark.parametrize("way", [way for way in QUICK_WAYS if revision_of(way) in (LAST_HANDSHAKE, LATEST)])
async def test_tasks(way: str) -> None:
    """A tool that runs only as a task is followed to its end, in both designs of tasks."""
    async with connected(way, answering({"elicitation/create": {"word": "windy"}})) as client:
        failed = await client.run("tools/call", {"name": "spoil", "arguments": {}})
        assert (failed["isError"], failed["content"][0]["text"]) == (True, "spoiled")
        working = asyncio.ensure_future(client.run("tools/call", {"name": "toil", "arguments": {"name": way}}))
        await begun(way).wait()
        working.cancel()
        with pytest.raises((asyncio.CancelledError, TaskCancelled)):
            await working
        assert not (await client.call("stopped", {"name": way})).is_error


@pytest.mark.parametrize("way", QUICK_WAYS)
async def test_cancellation(way: str) -> None:
    """Cancelling the task of a call ends the call on the server."""
    async with connected(way) as client:
        name = f"cancelled {way}"
        running = asyncio.ensure_future(client.call("stall", {"name": name}))
        await begun(name).wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not (await client.call("stopped", {"name": name})).is_error


@pytest.mark.parametrize("way", QUICK_WAYS)
async def test_listening(way: str) -> None:
    """Changes of lists and of resources arrive while the block runs."""
    async with connected(way) as client, client.listen("notes://shopping") as changes:
        await client.call("put", {"kind": "tools", "name": "fresh"})
        assert await anext(changes) == Change("notifications/tools/list_changed")
        await client.call("write_note", {"name": "shopping", "text": "eggs"})
        assert await anext(changes) == Change("notifications/resources/updated", "notes://shopping")
        assert changes.accepted["toolsListChanged"] is True


async def test_a_lost_stream_is_resumed() -> None:
    """A server may close the connection of a call; the rest of its stream is read after the last event."""
    resumed = asyncio.Event()
    way = f"http {LAST_HANDSHAKE}"

    def hear(params: Mapping[str, Any]) -> None:
        if params["progress"] == 2:
            resumed.set()

    async with connected(way, answering({"elicitation/create": {"word": "yes"}})) as client:
        running = asyncio.ensure_future(client.call("leave", {"name": "resumed"}, on_progress=hear))
        await resumed.wait()
        await client.call("release", {"name": "resumed"})
        assert (await running).text == "resumed yes"


@pytest.mark.parametrize("tenant", ["acme", "Ünïted", " padded ", "=?base64?x?="])
async def test_arguments_that_are_repeated_in_headers(tenant: str) -> None:
    """The client learns from the schema which headers a call needs, and encodes their values."""
    async with connected(f"http {LATEST}") as client:
        assert (await client.call("routed", {"tenant": tenant, "amount": 3})).text == f"3 for {tenant}"


async def test_concurrent_requests() -> None:
    """Requests of one client run side by side, on a shared stream as on streams of their own."""
    for way in (f"memory {LAST_HANDSHAKE}", f"http {LAST_HANDSHAKE}", f"http {LATEST}"):
        async with connected(way) as client:
            waiting = [asyncio.ensure_future(client.call("follow", {"name": f"{way} {n}"})) for n in range(10)]
            for n in reversed(range(10)):
                await client.call("release", {"name": f"{way} {n}"})
            assert [(await one).text for one in waiting] == [f"{way} {n} followed" for n in range(10)]


async def test_negotiation() -> None:
    """Without a revision, the latest one that the server speaks is used."""
    async with serving(Container()) as server:
        async with connect_url(f"http://127.0.0.1:{server.port}") as client:
            assert client.revision == LATEST
        with pytest.raises(ValueError, match="is not a protocol revision: use 2024-11-05"):
            async with connect_url(server.url, revision="2023-01-01"):
                pass


async def test_a_closed_client_ends_its_session() -> None:
    """The session of a handshake is deleted when the client is closed."""
    async with serving(Container()) as server:
        async with connect_url(server.url, revision=LAST_HANDSHAKE) as client:
            await client.list_tools()
            assert len(server.app.sessions) == 1
        assert len(server.app.sessions) == 0


async def test_a_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A server gets the usual variables and those that it is given, and no others of this process."""
    monkeypatch.setenv("AXOLOTL_AUTH__HMAC_SECRET", "swordfish")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "swordfish")
    code = "import json, os, sys; print(json.dumps(dict(os.environ)), file=sys.stderr)"
    with pytest.raises(ConnectionError):
        async with connect_process([sys.executable, "-c", code], environment={"GIVEN": "yes"}):
            pass
    variables = json.loads(capfd.readouterr().err)
    assert "swordfish" not in variables.values()
    assert variables["GIVEN"] == "yes"
    assert variables["PATH"] == os.environ["PATH"]


async def test_a_process_that_cannot_serve() -> None:
    """A process that ends, and one that does not exist, are errors."""
    with pytest.raises(ConnectionError, match="closed its output before it answered"):
        async with connect_process([sys.executable, "-c", ""]):
            pass
    with pytest.raises(InvalidReply, match="no JSON"):
        async with connect_process([sys.executable, "-c", "print('hello')"]):
            pass
    with pytest.raises(FileNotFoundError):
        async with connect_process(["/nowhere/server"]):
            pass
