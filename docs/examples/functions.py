import asyncio
import zlib
from typing import Annotated

from dependency_injector import containers, providers
from pydantic import Field

from axolotl_core import Context, tool, tools_of


# region functions
@tool
async def wait(seconds: Annotated[float, Field(ge=0, le=10, description="How long.")], context: Context) -> str:
    """Wait for a while."""
    await asyncio.sleep(seconds)
    return f"waited, {context.remaining_seconds:.0f} seconds were left"


@tool(name="crc32", title="Checksum", timeout_seconds=5)
def checksum(text: str, start: int = 0) -> int:
    """Compute a checksum.

    Args:
        text: The text to compute the checksum of.
        start: The checksum of the preceding text.
    """
    return zlib.crc32(text.encode(), start)


# endregion functions


# region methods
class Notebook:
    def __init__(self) -> None:
        self._notes: list[str] = []

    @tool
    async def add_note(self, text: str) -> int:
        """Add a note and return the number of notes."""
        self._notes.append(text)
        return len(self._notes)

    @tool
    async def read_notes(self) -> list[str]:
        """Read all notes."""
        return self._notes


# endregion methods


# region container
class Container(containers.DeclarativeContainer):
    notebook = providers.Singleton(Notebook)
    tools = providers.List(
        providers.Object(wait),
        providers.Object(checksum),
        providers.Callable(tools_of, notebook),
    )


# endregion container
