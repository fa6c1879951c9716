"""The port for a language model that replies, and an implementation without a model."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from axolotl_examples.hub.turn import Turn


class IResponder(Protocol):
    """Streams replies."""

    def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        """Yield the words of a reply, each with the space that follows it."""
        ...


class CourteousResponder(IResponder):
    """Greets first and then repeats each query. The same input always gives the same reply."""

    async def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        asked = 1 + sum(turn.speaker == "user" for turn in history)
        answer = f"Question {asked} was: {query}" if history else "Hello! How can I help?"
        for word in re.findall(r"\S+\s*", answer):
            await asyncio.sleep(0)  # stands for the time that a model needs
            yield word
