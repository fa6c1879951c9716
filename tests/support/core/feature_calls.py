"""Calls of prompts and resources with strings, as in the protocol."""

from typing import Any

import msgspec
from pydantic import ValidationError

from axolotl_core import Context, IResourceTemplate
from axolotl_core.arguments import explain
from axolotl_core.content import TextContent, TextResource
from axolotl_core.features.feature import IFeature
from axolotl_core.prompts import PromptResult
from axolotl_core.resources.uri_template import UriTemplate

URI = "test://asked"


def read(feature: IFeature, /, **texts: Any) -> Any:
    """Parse arguments like a call: strings or lists of strings that are converted."""
    try:
        return feature.argument_parser(coerce=True)(msgspec.json.encode(texts))
    except ValidationError as error:
        raise explain(error, feature.input_model) from None


async def run(feature: IFeature, /, **texts: Any) -> Any:
    """Run a prompt or read a resource."""
    return await feature.execute(read(feature, **texts), Context(uri=URI))


async def told(feature: IFeature, /, **texts: Any) -> list[str]:
    """Run a prompt and return the texts of its messages."""
    return told_by(await run(feature, **texts))


def told_by(result: PromptResult) -> list[str]:
    """Return the texts of messages."""
    contents = [message.content for message in result.messages]
    assert all(isinstance(content, TextContent) for content in contents)
    return [content.text for content in contents if isinstance(content, TextContent)]


async def text_at(template: IResourceTemplate[Any], uri: str) -> str:
    """Read the text of a URI that matches a template."""
    values = UriTemplate(template.uri_template).match(uri)
    assert values is not None
    [contents] = await template.execute(read(template, **values), Context(uri=uri))
    assert isinstance(contents, TextResource)
    assert contents.uri == uri
    return contents.text
