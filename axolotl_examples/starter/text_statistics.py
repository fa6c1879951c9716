"""A tool with a setting: how fast people read comes from the container."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolAnnotations, ToolContext


class Manuscript(BaseModel):
    """What to count."""

    text: str = Field(description="The text to count.", examples=["The quick brown fox jumps over the lazy dog."])


class Statistics(BaseModel):
    """How long a text is."""

    characters: int = Field(description="The number of characters, spaces included.")
    words: int = Field(description="The number of words.")
    lines: int = Field(description="The number of lines.")
    reading_seconds: int = Field(description="How long reading it takes, in seconds.")


class TextStatistics(ITool[Manuscript, Statistics]):
    """Counts what a text is made of."""

    name = "text_statistics"
    title = "Text statistics"
    description = "Count the characters, words and lines of a text and estimate how long reading it takes."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    def __init__(self, words_per_minute: int) -> None:
        self._words_per_minute = words_per_minute

    async def execute(self, arguments: Manuscript, context: ToolContext) -> Statistics:
        """Count."""
        words = len(arguments.text.split())
        return Statistics(
            characters=len(arguments.text),
            words=words,
            lines=len(arguments.text.splitlines()),
            reading_seconds=round(60 * words / self._words_per_minute),
        )
