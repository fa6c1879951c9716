"""A tool as a function, and one as a method of an object, to which the container gives the reading speed."""

from typing import Annotated

from pydantic import BaseModel, Field

from axolotl_core import ToolAnnotations, tool

_PURE = ToolAnnotations(read_only=True, idempotent=True, open_world=False)


@tool(title="Echo", annotations=_PURE)
async def echo(text: Annotated[str, Field(description="The text to return.", examples=["hello"])]) -> str:
    """Return a text unchanged, to check that the connection works."""
    return text


class Statistics(BaseModel):
    """The length of a text."""

    characters: int = Field(description="The number of characters, spaces included.")
    words: int = Field(description="The number of words.")
    lines: int = Field(description="The number of lines.")
    reading_seconds: int = Field(description="The estimated reading time in seconds.")


class Reader:
    """Reads at a given speed."""

    def __init__(self, words_per_minute: int) -> None:
        self._words_per_minute = words_per_minute

    @tool(title="Text statistics", annotations=_PURE)
    async def text_statistics(
        self,
        text: Annotated[
            str, Field(description="The text to count.", examples=["The quick brown fox jumps over the lazy dog."])
        ],
    ) -> Statistics:
        """Count the characters, words and lines of a text and estimate its reading time."""
        words = len(text.split())
        return Statistics(
            characters=len(text),
            words=words,
            lines=len(text.splitlines()),
            reading_seconds=round(60 * words / self._words_per_minute),
        )
