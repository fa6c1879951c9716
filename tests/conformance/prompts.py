"""Prompts: without and with arguments, with other content than text, and with a question."""

from typing import Final

from pydantic import BaseModel, Field

from axolotl_core import Context, IPrompt, prompt
from axolotl_core.content import EmbeddedResource, ImageContent, TextResource
from axolotl_core.prompts import PromptOutput
from axolotl_core.registry import AnyPrompt
from tests.conformance.forms import PromptContext
from tests.conformance.media import red_pixel

_KNOWN_VALUES = ("test", "testing", "tested", "other")


@prompt(name="test_simple_prompt")
async def simple_prompt() -> str:
    """Return a simple message."""
    return "This is a simple prompt for testing."


@prompt(name="test_prompt_with_arguments")
async def prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Repeat two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt_with_arguments.completes("arg1")
def known_values(value: str) -> list[str]:
    """Suggest values that start with the text."""
    return [known for known in _KNOWN_VALUES if known.startswith(value)]


class ResourceToEmbed(BaseModel):
    """The resource to embed in a prompt."""

    resource_uri: str = Field(alias="resourceUri", description="The URI of the resource to embed.")


class PromptWithResource(IPrompt[ResourceToEmbed]):
    """Embeds a resource in a message."""

    name = "test_prompt_with_embedded_resource"
    description = "Talk about a resource."

    async def render(self, arguments: ResourceToEmbed, context: Context) -> PromptOutput:
        content = TextResource(arguments.resource_uri, "Embedded resource content for testing.", "text/plain")
        return [EmbeddedResource(content), "Please process the embedded resource above."]


@prompt(name="test_prompt_with_image")
async def prompt_with_image() -> list[ImageContent | str]:
    """Return a message with an image."""
    return [ImageContent(red_pixel(), "image/png"), "Please analyze the image above."]


@prompt(name="test_input_required_result_prompt")
async def prompt_that_asks(context: Context) -> str:
    """Ask for the subject."""
    answer = await context.ask(PromptContext, "What context should the prompt use?", key="user_context")
    return f"Prompt with context: {answer.context}"


PROMPTS: Final[tuple[AnyPrompt, ...]] = (
    simple_prompt,
    prompt_with_arguments,
    PromptWithResource(),
    prompt_with_image,
    prompt_that_asks,
)
