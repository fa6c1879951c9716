"""The activation `conversation`: chat sessions with a history, and the port for a language model that replies."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Protocol

from pydantic import Field

from axolotl_core import Context, ToolAnnotations, ToolError, tool
from axolotl_examples.hub.repository import IConversations, Session, Turn

SessionName = Annotated[
    str, Field(description="The name of the session.", min_length=1, max_length=64, examples=["my-session"])
]
Query = Annotated[
    str, Field(description="The message to send.", min_length=1, max_length=10_000, examples=["Hello, world!"])
]


class IResponder(Protocol):
    """Streams replies."""

    def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        """Yield the words of a reply, each with the space that follows it."""
        ...


class CourteousResponder(IResponder):
    """Needs no model: greets first and then repeats each query. The same input always gives the same reply."""

    async def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        asked = 1 + sum(turn.speaker == "user" for turn in history)
        answer = f"Question {asked} was: {query}" if history else "Hello! How can I help?"
        for word in re.findall(r"\S+\s*", answer):
            await asyncio.sleep(0)  # stands for the time that a model needs
            yield word


class Conversation:
    """Replies, and stores the history of each session. A session belongs to the principal that created it."""

    def __init__(self, conversations: IConversations, responder: IResponder) -> None:
        self._conversations = conversations
        self._responder = responder

    @tool(title="Chat")
    async def chat(self, session_name: SessionName, query: Query, context: Context) -> AsyncIterator[str]:
        """Send a message to a session and get a reply. The first message creates the session."""
        session = Session(context.principal.identity, session_name)
        history = await self._conversations.turns(session)
        words: list[str] = []
        async for word in self._responder.respond(history, query):
            words.append(word)
            yield word
        message, reply = Turn(speaker="user", text=query), Turn(speaker="assistant", text="".join(words))
        await self._conversations.append(session, [message, reply])

    @tool(title="History", annotations=ToolAnnotations(read_only=True))
    async def history(self, session_name: SessionName, context: Context) -> list[Turn]:
        """List the turns of a session, oldest first."""
        turns = await self._conversations.turns(Session(context.principal.identity, session_name))
        if not turns:
            raise _not_found(session_name)
        return turns

    @tool(title="Forget", annotations=ToolAnnotations(destructive=True))
    async def forget(self, session_name: SessionName, context: Context) -> str:
        """Delete a session and its history."""
        count = await self._conversations.forget(Session(context.principal.identity, session_name))
        if not count:
            raise _not_found(session_name)
        return f"Forgot {count} turns."


def _not_found(session_name: str) -> ToolError:
    return ToolError(f"Session '{session_name}' not found")
