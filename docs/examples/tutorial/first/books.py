from dependency_injector import containers, providers

from axolotl_core import tool


@tool
async def reading_time(pages: int) -> str:
    """Estimate how long a book takes to read.

    Args:
        pages: How many pages the book has.
    """
    return f"{pages / 40:.0f} hours"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(reading_time))
