"""The keyword search: one tool, and the services it is made of."""

from dependency_injector import containers, providers

from axolotl_examples.keyword_search.fence import Fence
from axolotl_examples.keyword_search.reader import FileReader
from axolotl_examples.keyword_search.searcher import KeywordSearcher
from axolotl_examples.keyword_search.settings import SearchSettings
from axolotl_examples.keyword_search.tool import KeywordSearch


class Container(containers.DeclarativeContainer):
    """The search tool; override `search_settings` to say which directories it may read."""

    settings = providers.Object(
        {
            "server": {
                "name": "axolotl-keyword-search",
                "title": "Axolotl keyword search",
                "instructions": "Find a keyword in the files below some directories: begin with few results.",
            }
        }
    )

    search_settings = providers.Singleton(SearchSettings)
    fence = providers.Singleton(Fence, search_settings.provided.allowed_roots)
    reader = providers.Singleton(FileReader, search_settings.provided.max_file_bytes)
    searcher = providers.Singleton(KeywordSearcher, search_settings, reader)

    tools = providers.List(providers.Singleton(KeywordSearch, fence, searcher))
