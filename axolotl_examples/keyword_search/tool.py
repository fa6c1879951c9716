"""The tool: it admits the paths, lets the search run, and hands over what was found."""

from axolotl_core import ITool, ToolAnnotations, ToolContext
from axolotl_examples.keyword_search.fence import Fence
from axolotl_examples.keyword_search.models import KeywordQuery, SearchReport
from axolotl_examples.keyword_search.searcher import KeywordSearcher


class KeywordSearch(ITool[KeywordQuery, SearchReport]):
    """Finds a keyword in the files of directory trees."""

    name = "keyword_search"
    title = "Keyword search"
    description = "Search for keyword occurrences across directory trees."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    execution = "thread"  # reading waits for the disk, and the event loop must not
    suspends = False
    timeout_seconds = 60.0
    max_concurrency = 4

    def __init__(self, fence: Fence, searcher: KeywordSearcher) -> None:
        self._fence = fence
        self._searcher = searcher

    async def execute(self, arguments: KeywordQuery, context: ToolContext) -> SearchReport:
        """Search, in the worker thread that this runs in."""
        return self._searcher.search(arguments, self._fence.admit(arguments.root_paths), context)
