"""Prompts and templates with completion."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Completion, Context, IPrompt, IResourceTemplate, ToolError, prompt, prompts_of, resource
from axolotl_core.features.completion import CompletionOutput


class Colour(StrEnum):
    RED = "red"
    DARK_RED = "dark red"
    BLUE = "Blue"


LANGUAGES = ("python", "pascal", "perl", "rust")
NUMBERS = [f"number {number}" for number in range(150)]
CITIES = {"France": ["Paris", "Lyon"], "Peru": ["Lima"]}


@prompt
def review(
    language: str, colour: Colour, depth: Literal["deep", "shallow"], strict: bool = False, note: str = ""
) -> str:
    """Review something."""
    return f"{language} {colour} {depth} {strict} {note}"


@review.completes("language")
def languages(value: str) -> list[str]:
    return [language for language in LANGUAGES if language.startswith(value)]


@prompt
async def count(number: str, few: str, known: str, wrong: str) -> str:
    """Count."""
    return number


@count.completes("number")
async def numbers(value: str) -> list[str]:
    return NUMBERS


@count.completes("few")
async def few_numbers(value: str) -> Completion:
    return Completion(NUMBERS[:2], total=1000, has_more=True)


@count.completes("known")
async def all_numbers(value: str) -> Completion:
    return Completion(NUMBERS, total=5000)


@count.completes("wrong")
async def no_numbers(value: str) -> Completion:
    if value == "refuse":
        raise ToolError("Nothing to suggest")
    raise RuntimeError("the password is swordfish")


class Place(BaseModel):
    country: str
    city: str


class Travel(IPrompt[Place]):
    name = "travel"

    async def render(self, arguments: Place, context: Context) -> str:
        return f"Go to {arguments.city} in {arguments.country}"

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        if argument == "country":
            return [country for country in CITIES if country.startswith(value)]
        return [city for city in CITIES.get(known.get("country", ""), []) if city.startswith(value)]


class Weather(IResourceTemplate[Place]):
    uri_template = "weather://{country}/{city}"
    name = "weather"

    async def read(self, variables: Place, context: Context) -> str:
        return "fine"

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        return CITIES.get(known.get("country", ""), []) if argument == "city" else list(CITIES)


@resource("lists://{kind}/{of}")
def lists(kind: Literal["short", "long"], of: str) -> str:
    """Give a list."""
    return kind


@lists.completes("of")
def things(value: str, known: Mapping[str, str]) -> Sequence[str]:
    return [f"{value} {known['kind']}"] if "kind" in known else ["?"]


@resource("fixed://one")
def fixed() -> str:
    """Have no variables."""
    return "one"


class Shop:
    """Completes the names of articles."""

    def __init__(self, stock: Sequence[str]) -> None:
        self._stock = stock

    @prompt
    def buy(self, thing: str) -> str:
        """Buy something."""
        return thing

    @buy.completes("thing")
    def in_stock(self, value: str) -> list[str]:
        return [thing for thing in self._stock if value in thing]


class Container(containers.DeclarativeContainer):
    """Everything that can be completed."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    prompts = providers.List(
        providers.Object(review),
        providers.Object(count),
        providers.Singleton(Travel),
        providers.Callable(prompts_of, providers.Singleton(Shop, ["apples", "pears"])),
    )
    resources = providers.List(providers.Singleton(Weather), providers.Object(lists), providers.Object(fixed))
