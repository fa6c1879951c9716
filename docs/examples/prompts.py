from datetime import date
from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, IPrompt, PromptMessage, ToolError, prompt, prompts_of
from axolotl_core.content import EmbeddedResource, TextResource
from axolotl_core.prompts import PromptOutput, PromptResult


# region class
class Journey(BaseModel):
    city: str = Field(description="The city to visit.")
    day: date = Field(description="The date, for example 2026-12-31.")
    travelers: int = Field(1, ge=1, description="The number of travelers.")
    pace: Literal["slow", "busy"] = "slow"


class PlanJourney(IPrompt[Journey]):
    name = "plan_journey"
    title = "Plan a journey"
    description = "Plan a day in a city."

    async def render(self, arguments: Journey, context: Context) -> str:
        people = "one person" if arguments.travelers == 1 else f"{arguments.travelers} people"
        return f"Plan a {arguments.pace} {arguments.day:%A} in {arguments.city} for {people}."


# endregion class


# region messages
@prompt
async def discuss(topic: str) -> list[PromptMessage | EmbeddedResource | str]:
    """Discuss a topic by the house rules."""
    return [
        EmbeddedResource(TextResource("rules://house", "Be kind. Be brief.", "text/plain")),
        PromptMessage("assistant", "I have read the rules."),
        f"Then let us talk about {topic}.",
    ]


# endregion messages


# region whole
@prompt
async def summarize(text: str) -> PromptResult:
    """Summarize a text."""
    message = PromptMessage("user", f"Summarize in one sentence: {text}")
    return PromptResult([message], description=f"A summary of {len(text)} characters")


# endregion whole


# region methods
class Desk:
    def __init__(self, letters: dict[int, str]) -> None:
        self._letters = letters

    @prompt
    async def answer_letter(self, number: int) -> PromptOutput:
        """Answer a letter."""
        if number not in self._letters:
            raise ToolError(f"There is no letter {number}.")
        return f"Answer this letter: {self._letters[number]}"


# endregion methods


# region container
class Container(containers.DeclarativeContainer):
    desk = providers.Singleton(Desk, {1: "Where is my parcel?"})
    prompts = providers.List(
        providers.Singleton(PlanJourney),
        providers.Object(discuss),
        providers.Object(summarize),
        providers.Callable(prompts_of, desk),
    )


# endregion container
