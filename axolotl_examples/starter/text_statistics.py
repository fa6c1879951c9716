"""A tool with a setting: the container provides the reading speed."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations


class TextInput(BaseModel):
    """The text to count."""

    text: str = Field(description="The text to count.", examples=["The quick brown fox jumps over the lazy dog."])


class Statistics(BaseModel):
    """The length of a text."""

    characters: int = Field(description="The number of characters, spaces included.")
    words: int = Field(description="The number of words.")
    lines: int = Field(description="The number of lines.")
    reading_seconds: int = Field(description="The estimated reading time in seconds.")


class TextStatistics(ITool[TextInput, Statistics]):
    """Counts characters, words and lines."""

    name = "text_statistics"
    title = "Text statistics"
    description = "Count the characters, words and lines of a text and estimate its reading time."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    def __init__(self, words_per_minute: int) -> None:
        self._words_per_minute = words_per_minute

    async def execute(self, arguments: TextInput, context: Context) -> Statistics:
        words = len(arguments.text.split())
        return Statistics(
            characters=len(arguments.text),
            words=words,
            lines=len(arguments.text.splitlines()),
            reading_seconds=round(60 * words / self._words_per_minute),
        )
