"""Resources with every kind of definition, content and URI."""

from typing import Any, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, IResource, IResourceTemplate, ResourceNotFound, ToolError, resource
from axolotl_core.content import Annotations, BlobResource, TextResource
from tests.transcripts.prompting import ICON


class Notes(IResource):
    uri = "notes://today"
    name = "notes"
    title = "Notes of today"
    description = "What happened"
    mime_type = "text/markdown"
    size = 5
    annotations = Annotations(("user",), 0.5, "2025-01-01T00:00:00Z")
    icons = (ICON,)
    meta = {"example.com/pages": 1}  # noqa: RUF012

    async def read(self, context: Context) -> str:
        return "# Hi\n"


class Report(BaseModel):
    year: int
    total: float


@resource("reports://latest")
def latest_report() -> Report:
    """Give a model."""
    return Report(year=2026, total=1.5)


@resource("logo://png", mime_type="image/png")
def logo() -> bytes:
    """Give bytes."""
    return b"\x89PNG"


@resource("folder://all")
async def folder(context: Context) -> list[TextResource | BlobResource]:
    """Give several contents."""
    return [
        TextResource(f"{context.uri}/a.txt", "inside", "text/plain", {"example.com/n": 2}),
        BlobResource(f"{context.uri}/a.bin", b"\xff"),
    ]


@resource("plain://bytes")
def plain_bytes() -> bytes:
    return b"\x00"


@resource("plain://list")
def plain_list() -> list[int]:
    return [1, 2]


@resource("gone://now")
def gone() -> str:
    raise ResourceNotFound("gone://now")


@resource("closed://door")
def closed() -> str:
    raise ToolError("The door is closed", meta={"example.com/opens": "noon"})


@resource("broken://glass")
def broken() -> str:
    raise RuntimeError("the password is swordfish")


class Person(BaseModel):
    number: int
    part: Literal["name", "age"] = "name"


class People(IResourceTemplate[Person]):
    uri_template = "people://{number}/{part}"
    name = "people"
    title = "Somebody"
    description = "Who is who"
    mime_type = "application/json"
    icons = (ICON,)
    meta = {"example.com/pages": 2}  # noqa: RUF012

    async def read(self, variables: Person, context: Context) -> Any:
        if variables.number > 99:
            raise ResourceNotFound(context.uri)
        return {"number": variables.number, "part": variables.part, "uri": context.uri}


@resource("people://1/name")
def first() -> str:
    """Be more than a template makes of the same URI."""
    return "the first"


@resource("files:///{+path}")
def file(path: str) -> str:
    """Read a path that may have several segments."""
    return f"file {path}"


@resource("pages:///{path}", unscreened=frozenset({"path"}))
def page(path: str) -> str:
    """Read a path wherever it leads."""
    return f"page {path}"


@resource("search://all{?query,limit}")
def search(query: str = "", limit: int = 10) -> str:
    """Search."""
    return f"{query!r} up to {limit}"


@resource("ui://panel")
def panel() -> str:
    """Be the page of an app."""
    return "<!DOCTYPE html><title>Panel</title>"


class Container(containers.DeclarativeContainer):
    """A server with only resources."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    resources = providers.List(
        providers.Singleton(Notes),
        providers.Object(latest_report),
        providers.Object(logo),
        providers.Object(folder),
        providers.Object(plain_bytes),
        providers.Object(plain_list),
        providers.Object(gone),
        providers.Object(closed),
        providers.Object(broken),
        providers.Object(panel),
        providers.Object(first),
        providers.Singleton(People),
        providers.Object(file),
        providers.Object(page),
        providers.Object(search),
    )
