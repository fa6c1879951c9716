"""The keyword search tool."""

from axolotl_core import Context, ITool, ToolAnnotations
from axolotl_examples.keyword_search.allowed_roots import AllowedRoots
from axolotl_examples.keyword_search.models import KeywordQuery, SearchReport
from axolotl_examples.keyword_search.searcher import KeywordSearcher


class KeywordSearch(ITool[KeywordQuery, SearchReport]):
    """Finds a keyword in the files of directory trees."""

    name = "keyword_search"
    title = "Keyword search"
    description = "Search for keyword occurrences across directory trees."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    execution = "thread"  # file access must not block the event loop
    suspends = False
    timeout_seconds = 60.0
    max_concurrency = 4
    queue_limit = 16
    queue_timeout_seconds = 2.0

    def __init__(self, allowed_roots: AllowedRoots, searcher: KeywordSearcher) -> None:
        self._allowed_roots = allowed_roots
        self._searcher = searcher

    async def execute(self, arguments: KeywordQuery, context: Context) -> SearchReport:
        return self._searcher.search(arguments, self._allowed_roots.resolve(arguments.root_paths), context)
