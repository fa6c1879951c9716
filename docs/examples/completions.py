import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Completion, Context, IPrompt, prompt, resource
from axolotl_server import connect

PLACES = {"Austria": ["Graz", "Linz", "Wien"], "Italy": ["Milano", "Roma", "Torino"]}


# region smallest
@prompt
def visit(country: str, city: str, season: Literal["spring", "summer", "autumn", "winter"]) -> str:
    """Plan a visit to a city."""
    return f"Plan a {season} day in {city}, {country}."


@visit.completes("country")
def countries(value: str) -> list[str]:
    return [country for country in PLACES if country.startswith(value)]


# endregion smallest


# region known
@visit.completes("city")
async def cities(value: str, known: Mapping[str, str]) -> list[str]:
    return [city for city in PLACES.get(known.get("country", ""), []) if city.startswith(value)]


# endregion known


# region template
@resource("maps://{city}")
def town_map(city: str) -> str:
    """The map of a city."""
    return f"Here should be a map of {city}."


@town_map.completes("city")
def mapped_cities(value: str) -> Completion:
    found = [city for cities in PLACES.values() for city in cities if value.casefold() in city.casefold()]
    return Completion(found[:2], total=len(found), has_more=len(found) > 2)


# endregion template


# region class
class Ticket(BaseModel):
    number: str


class ExplainTicket(IPrompt[Ticket]):
    name = "explain_ticket"
    description = "Explain a ticket."

    async def render(self, arguments: Ticket, context: Context) -> str:
        return f"Explain ticket {arguments.number}."

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> Sequence[str]:
        return [f"{value}{digit}" for digit in range(3)]


# endregion class


class Container(containers.DeclarativeContainer):
    prompts = providers.List(providers.Object(visit), providers.Singleton(ExplainTicket))
    resources = providers.List(providers.Object(town_map))


# region asking
async def main() -> None:
    async with connect(Container()) as client:
        print(await client.complete("country", "I", prompt="visit"))
        print(await client.complete("city", known={"country": "Austria"}, prompt="visit"))
        print(await client.complete("season", "s", prompt="visit"))
        print(await client.complete("city", "o", template="maps://{city}"))
        print(await client.complete("number", "4", prompt="explain_ticket"))


# endregion asking


if __name__ == "__main__":
    asyncio.run(main())
