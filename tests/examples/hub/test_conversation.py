"""The activation `conversation`, with its database."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ConfigurationError, Principal
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION
from axolotl_examples.hub import Container
from axolotl_examples.hub.container import HubSettings
from axolotl_examples.hub.conversation import IResponder
from axolotl_examples.hub.repository import IConversations, Session, Turn
from axolotl_server import InProcessClient, ServerHost, connect
from tests.examples.registration.dialogue import in_memory

SESSION = Session(ANONYMOUS.identity, "s")


class PatientResponder(IResponder):
    """Starts an answer and waits."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.left = asyncio.Event()

    async def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        yield "Well, "
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


def make_container(database: str = ":memory:", **limits: Any) -> Any:
    container: Any = Container()
    container.hub_settings.override(providers.Object(HubSettings(database=database, **limits)))
    return container


@pytest.fixture
async def client() -> AsyncIterator[InProcessClient]:
    async with connect(make_container()) as connected:
        yield connected


async def chat(client: InProcessClient, query: str, session: str = "my-session") -> str:
    return (await client.call("conversation.chat", {"session_name": session, "query": query})).text


async def history(client: InProcessClient, session: str = "my-session") -> Any:
    answer = await client.call("conversation.history", {"session_name": session})
    return answer.text if answer.is_error else [(turn["speaker"], turn["text"]) for turn in answer.structured]


async def test_chat(client: InProcessClient) -> None:
    """A session remembers its turns."""
    assert await chat(client, "Hello, world!") == "Hello! How can I help?"
    assert await chat(client, "Who are you?") == "Question 2 was: Who are you?"
    assert await history(client) == [
        ("user", "Hello, world!"),
        ("assistant", "Hello! How can I help?"),
        ("user", "Who are you?"),
        ("assistant", "Question 2 was: Who are you?"),
    ]


async def test_sessions_are_apart(client: InProcessClient) -> None:
    """Sessions are separate, even with similar names."""
    names = ["one", "One", "' OR 1=1 --", "两"]
    for name in names:
        assert await chat(client, f"I am {name}", name) == "Hello! How can I help?"
    assert [(await history(client, name))[0] for name in names] == [("user", f"I am {name}") for name in names]


async def test_owners(tmp_path: Path) -> None:
    """A session belongs to its principal: nobody else, of any issuer or tenant, can read or delete it."""
    owners = [
        Principal("eve"),
        Principal("adam"),
        Principal("eve", tenant="other"),
        Principal("eve", issuer="https://issuer.example"),
    ]
    async with ServerHost(make_container(str(tmp_path / "talk.sqlite3"))) as host:
        clients = [InProcessClient(host.handler, principal=owner) for owner in owners]
        assert await chat(clients[0], "My PIN is 1234") == "Hello! How can I help?"
        for other in clients[1:]:
            assert await history(other) == "Session 'my-session' not found"
            forgotten = await other.call("conversation.forget", {"session_name": "my-session"})
            assert forgotten.text == "Session 'my-session' not found"
            assert await chat(other, "Hello") == "Hello! How can I help?"
        assert await history(clients[0]) == [("user", "My PIN is 1234"), ("assistant", "Hello! How can I help?")]
        for client in clients:
            await client.close()


async def test_forget(client: InProcessClient) -> None:
    """A forgotten session no longer exists and can be started again."""
    await chat(client, "Hello, world!")
    await chat(client, "Stay", "other")
    assert (await client.call("conversation.forget", {"session_name": "my-session"})).text == "Forgot 2 turns."
    assert await history(client) == "Session 'my-session' not found"
    assert len(await history(client, "other")) == 2
    assert await chat(client, "Me again") == "Hello! How can I help?"


async def test_many_at_once() -> None:
    """Questions and answers stay together when many clients chat at the same time."""
    async with ServerHost(make_container()) as host:
        clients = [InProcessClient(host.handler) for _ in range(20)]
        await asyncio.gather(*(chat(client, str(number)) for number, client in enumerate(clients)))
        turns = await history(clients[0])
        for client in clients:
            await client.close()
    assert sorted(int(text) for speaker, text in turns if speaker == "user") == list(range(20))
    assert [speaker for speaker, _ in turns] == ["user", "assistant"] * 20


async def test_cancelled_chat() -> None:
    """A canceled chat ends at once and is not stored."""
    container, responder = make_container(), PatientResponder()
    container.responder.override(providers.Object(responder))
    async with in_memory(container, LATEST_HANDSHAKE_REVISION) as client:
        arguments = {"session_name": "my-session", "query": "Take your time"}
        await client.send("tools/call", {"name": "conversation.chat", "arguments": arguments}, id="slow")
        await responder.begun.wait()
        await client.send("notifications/cancelled", {"requestId": "slow"})
        await responder.left.wait()
        reply = await client.call("conversation.history", {"session_name": "my-session"})
    assert reply["result"]["content"][0]["text"] == "Session 'my-session' not found"


async def test_file(tmp_path: Path) -> None:
    """Sessions in the configured file survive a restart of the server."""
    file = str(tmp_path / "talk.sqlite3")
    async with connect(make_container(file)) as client:
        await chat(client, "Hello, world!")
    async with connect(make_container(file)) as client:
        assert await chat(client, "Do you know me?") == "Question 2 was: Do you know me?"


async def test_resource() -> None:
    """The database and its thread are opened at the start and closed at the stop."""
    container = make_container()
    async with ServerHost(container):
        conversations: IConversations = await container.conversations()
        await conversations.append(SESSION, [Turn(speaker="user", text="hi")])
        assert await conversations.turns(SESSION) == [Turn(speaker="user", text="hi")]
    with pytest.raises(RuntimeError, match="shutdown"):
        await conversations.turns(SESSION)


@pytest.mark.parametrize("content", [None, b"This is no database, it is a letter to a friend."])
async def test_unusable_file(tmp_path: Path, content: bytes | None) -> None:
    """The server does not start if the database cannot be opened."""
    file = tmp_path / "letters" / "talk.sqlite3"
    if content is not None:
        file.parent.mkdir()
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        await ServerHost(make_container(str(file))).start()
    problem = "unable to open database file" if content is None else "file is not a database"
    assert caught.value.findings == (
        f"A resource of the container failed to start (conversations): The database {str(file)!r} cannot be used: "
        f"{problem}; set HUB_DATABASE to a file that the hub may create or that it has created",
    )


async def test_transaction() -> None:
    """Turns are appended completely or not at all."""
    container = make_container()
    async with ServerHost(container):
        conversations: IConversations = await container.conversations()
        broken: Any = Turn.model_construct(speaker="assistant", text=None)  # type: ignore[arg-type]
        with pytest.raises(sqlite3.IntegrityError):
            await conversations.append(SESSION, [Turn(speaker="user", text="hi"), broken])
        assert await conversations.turns(SESSION) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"session_name": "", "query": "hi"}, "session_name: String should have at least 1 character"),
        ({"session_name": "x" * 65, "query": "hi"}, "session_name: String should have at most 64 characters"),
        ({"session_name": "s", "query": ""}, "query: String should have at least 1 character"),
        ({"session_name": "s"}, "query: required, but missing"),
    ],
)
async def test_arguments(client: InProcessClient, arguments: Any, problem: str) -> None:
    """Invalid arguments are rejected before the responder runs."""
    answer = await client.call("conversation.chat", arguments)
    assert answer.is_error
    assert answer.text.startswith(f"Invalid arguments: {problem}")


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the file; by default, conversations are kept in memory."""
    monkeypatch.delenv("HUB_DATABASE", raising=False)
    assert HubSettings().database == ":memory:"
    monkeypatch.setenv("HUB_DATABASE", "talk.sqlite3")
    assert HubSettings().database == "talk.sqlite3"


async def test_a_session_keeps_its_last_turns() -> None:
    """A session does not grow without bound: the oldest turns are dropped, those of other sessions are not."""
    async with connect(make_container(max_turns=4)) as client:
        await chat(client, "other", "other")
        for number in range(5):
            await chat(client, f"question {number}")
        turns = await history(client)
        assert [text for speaker, text in turns if speaker == "user"] == ["question 3", "question 4"]
        assert len(turns) == 4
        assert len(await history(client, "other")) == 2


async def test_a_principal_has_a_limited_number_of_sessions() -> None:
    """A further session is refused with a hint, and possible again after another one was forgotten."""
    async with connect(make_container(max_sessions=2)) as client:
        for name in ("one", "two", "one"):
            await chat(client, "Hello!", name)
        assert await chat(client, "Hello!", "three") == "There are 2 sessions, which is the maximum: forget one first"
        await client.call("conversation.forget", {"session_name": "two"})
        assert await chat(client, "Hello!", "three") == "Hello! How can I help?"
