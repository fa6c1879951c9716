from dependency_injector import containers, providers

from axolotl_core import ToolAnnotations, ToolError, tool, tools_of
from axolotl_core.policies.tool_rules import Retry


class Places:
    """A service that knows where parcels are."""

    def __init__(self, places: dict[int, str]) -> None:
        self._places = places

    async def find(self, number: int) -> str | None:
        return self._places.get(number)

    async def move(self, number: int, place: str) -> None:
        self._places[number] = place


class Tracking:
    def __init__(self, places: Places) -> None:
        self._places = places

    @tool(annotations=ToolAnnotations(read_only=True), retry=Retry(attempts=3, base_seconds=0.01))
    async def track(self, number: int) -> dict[str, str]:
        """Find a parcel."""
        place = await self._places.find(number)
        if place is None:
            raise ToolError(f"There is no parcel {number}")
        return {"place": place}


class Delivery:
    def __init__(self, places: Places) -> None:
        self._places = places

    @tool(annotations=ToolAnnotations(idempotent=True))
    async def deliver(self, number: int) -> str:
        """Deliver a parcel."""
        await self._places.move(number, "delivered")
        return "delivered"


class Container(containers.DeclarativeContainer):
    places = providers.Singleton(Places, {7: "Hamburg"})
    tools = providers.Aggregate(
        read=providers.List(providers.Callable(tools_of, providers.Singleton(Tracking, places))),
        write=providers.List(providers.Callable(tools_of, providers.Singleton(Delivery, places))),
    )
