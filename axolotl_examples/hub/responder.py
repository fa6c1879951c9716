"""Who answers: the port that a language model would stand behind, and an answer that needs none."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from axolotl_examples.hub.turn import Turn


class IResponder(Protocol):
    """Answers piece by piece."""

    def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        """Yield the words of an answer, each with the space behind it."""
        ...


class CourteousResponder(IResponder):
    """Greets, and from then on repeats what it heard; always the same words for the same question."""

    async def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        """Say it word by word."""
        asked = 1 + sum(turn.speaker == "user" for turn in history)
        answer = f"Question {asked} was: {query}" if history else "Hello! How can I help?"
        for word in re.findall(r"\S+\s*", answer):
            await asyncio.sleep(0)  # where a model would think
            yield word
