"""Trees to search, and searches through the real server."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from axolotl_core import Context
from axolotl_examples.keyword_search import Container
from axolotl_examples.keyword_search.allowed_roots import AllowedRoots
from axolotl_examples.keyword_search.directory import FileReader
from axolotl_examples.keyword_search.models import KeywordQuery, SearchReport
from axolotl_examples.keyword_search.searcher import KeywordSearcher, SearchSettings
from axolotl_server import InProcessClient, connect
from tests.support.core.callers import Caller

Lines = list[tuple[str, int, str]]


def plant(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a directory."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def container_for(*roots: Path, **settings: Any) -> Any:
    """Create the real container with some allowed directories."""
    container: Any = Container()
    container.search_settings.override(SearchSettings(allowed_roots=roots, **settings))
    return container


def search_directly(root: Path, context: Context | None = None, **query: Any) -> SearchReport:
    """Search in this thread, without a server."""
    settings = SearchSettings(allowed_roots=(root,), progress_seconds=0)
    question = KeywordQuery(**{"keyword": "key", "root_paths": ["."], **query})
    searcher = KeywordSearcher(settings, FileReader(settings.max_file_bytes))
    return searcher.search(question, AllowedRoots([root]).resolve(question.root_paths), context or Context())


class Searching:
    """A client of a search server."""

    def __init__(self, client: InProcessClient, root: Path) -> None:
        self.client = client
        self.root = root

    def plant(self, files: Mapping[str, str | bytes]) -> None:
        """Write files into the allowed directory."""
        plant(self.root, files)

    async def report(self, keyword: str = "key", /, **options: Any) -> Any:
        """Search, by default everything that is allowed, and return the report."""
        outcome = await self.client.call("keyword_search", {"keyword": keyword, "root_paths": ["."], **options})
        assert not outcome.is_error, outcome.text
        return outcome.structured

    async def lines(self, keyword: str = "key", /, **options: Any) -> Lines:
        """Search and return the matching lines."""
        return lines_of(await self.report(keyword, **options))

    async def files(self, keyword: str = "key", /, **options: Any) -> list[str]:
        """Search and return the names of the files."""
        return [found["file"] for found in (await self.report(keyword, **options))["files"]]

    async def refusal(self, keyword: str = "key", /, **options: Any) -> str:
        """Search and return the text of the error."""
        outcome = await self.client.call("keyword_search", {"keyword": keyword, "root_paths": ["."], **options})
        assert outcome.is_error, outcome.structured
        return outcome.text


def lines_of(report: Any) -> Lines:
    """List the matching lines of a report."""
    return [
        (found["file"], line["line_number"], line["text"]) for found in report["files"] for line in found["matches"]
    ]


@asynccontextmanager
async def searching_in(root: Path, **settings: Any) -> AsyncIterator[Searching]:
    """Serve the real container with an allowed directory."""
    async with connect(container_for(root, **settings)) as client:
        yield Searching(client, root)


class Listener(Caller):
    """A caller that runs a function whenever progress is reported."""

    def __init__(self, react: Callable[[float], object]) -> None:
        super().__init__()
        self._react = react

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._react(progress)
