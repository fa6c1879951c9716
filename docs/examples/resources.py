from pathlib import Path

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, IResource, IResourceTemplate, ResourceNotFound, resource, resources_of
from axolotl_core.content import Annotations, BlobResource, TextResource


# region class
class License(IResource):
    uri = "license://text"
    name = "license"
    description = "The license of this software."
    mime_type = "text/plain"
    annotations = Annotations(audience=("user",), priority=0.2)
    execution = "thread"  # reading a file may block

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    async def read(self, context: Context) -> str:
        return self._path.read_text(encoding="utf-8")


# endregion class


# region template
class Table(BaseModel):
    schema_name: str = Field(description="The schema.", alias="schema")
    table: str = Field(description="The table.")


class Columns(IResourceTemplate[Table]):
    uri_template = "db://{schema}/{table}/columns"
    name = "columns"
    description = "The columns of a table."

    def __init__(self, tables: dict[str, list[str]]) -> None:
        self._tables = tables

    async def read(self, variables: Table, context: Context) -> list[str]:
        found = self._tables.get(f"{variables.schema_name}.{variables.table}")
        if found is None:
            raise ResourceNotFound(context.uri)
        return found


# endregion template


# region forms
@resource("pixel://red", mime_type="image/gif")
async def pixel() -> bytes:
    """Bytes become base64."""
    return b"GIF89a"


@resource("album://all")
async def album(context: Context) -> list[TextResource | BlobResource]:
    """Several contents, each with its own URI."""
    return [
        TextResource(f"{context.uri}/title", "Spring", "text/plain"),
        BlobResource(f"{context.uri}/1", b"GIF89a", "image/gif"),
    ]


# endregion forms


# region variables
@resource("search://pages{?text,limit}")
async def search(text: str = "", limit: int = 10) -> str:
    """Query parameters are optional."""
    return f"the first {limit} pages with {text!r}"


@resource("tree://{+path}")
async def tree(path: str) -> str:
    """A plus sign allows slashes in a variable."""
    return f"the leaf {path}"


# endregion variables


# region methods
class Shelf:
    def __init__(self, books: dict[str, str]) -> None:
        self._books = books

    @resource("shelf://{isbn}")
    async def book(self, isbn: str, context: Context) -> str:
        """A book by its ISBN."""
        if isbn not in self._books:
            raise ResourceNotFound(context.uri)
        return self._books[isbn]


# endregion methods


# region container
class Container(containers.DeclarativeContainer):
    shelf = providers.Singleton(Shelf, {"9780141439518": "Pride and Prejudice"})
    resources = providers.List(
        providers.Singleton(License, Path(__file__)),
        providers.Singleton(Columns, {"public.orders": ["number", "state"]}),
        providers.Object([pixel, album, search, tree]),
        providers.Callable(resources_of, shelf),
    )


# endregion container
