"""The container of the keyword search: one tool and its services."""

from dependency_injector import containers, providers

from axolotl_examples.keyword_search.allowed_roots import AllowedRoots
from axolotl_examples.keyword_search.directory import FileReader
from axolotl_examples.keyword_search.searcher import KeywordSearcher, SearchSettings
from axolotl_examples.keyword_search.tool import KeywordSearch


class Container(containers.DeclarativeContainer):
    """The search tool. Override `search_settings` to set the directories that it may read."""

    settings = providers.Object(
        {
            "server": {
                "name": "axolotl-keyword-search",
                "title": "Axolotl keyword search",
                "instructions": "Find a keyword in the files of directory trees. Start with a small max_results.",
            }
        }
    )

    search_settings = providers.Singleton(SearchSettings)
    allowed_roots = providers.Singleton(AllowedRoots, search_settings.provided.allowed_roots)
    reader = providers.Singleton(FileReader, search_settings.provided.max_file_bytes)
    searcher = providers.Singleton(KeywordSearcher, search_settings, reader)

    tools = providers.List(providers.Singleton(KeywordSearch, allowed_roots, searcher))
