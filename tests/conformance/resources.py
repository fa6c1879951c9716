"""Resources: text, bytes, one for subscriptions, and a template."""

from typing import Final

from pydantic import BaseModel, Field

from axolotl_core import resource
from axolotl_core.registry import AnyResource
from tests.conformance.media import red_pixel


class TemplateData(BaseModel):
    """The content of a URI of the template."""

    id: str
    template_test: bool = Field(True, serialization_alias="templateTest")
    data: str


@resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A constant text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """A constant image."""
    return red_pixel()


@resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text for subscriptions."""
    return "Watched resource content"


@resource("test://template/{id}/data", mime_type="application/json")
async def template_data(id: str) -> TemplateData:
    """Data for any id."""
    return TemplateData(id=id, data=f"Data for ID: {id}")


RESOURCES: Final[tuple[AnyResource, ...]] = (static_text, static_binary, watched_resource, template_data)
