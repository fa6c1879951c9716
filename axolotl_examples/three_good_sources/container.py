"""The container of the tools and their services."""

from dependency_injector import containers, providers

from axolotl_core import tools_of
from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.loading import load_registry
from axolotl_examples.three_good_sources.matcher import FuzzyMatcher
from axolotl_examples.three_good_sources.source_tools import SourceTools


class Container(containers.DeclarativeContainer):
    """Four tools for a registry that is verified before the server starts."""

    settings = providers.Object(
        {
            "server": {
                "name": "three-good-sources",
                "title": "Three good sources",
                "instructions": "Call get_sources before a web search: it returns three vetted sources for a topic.",
            },
            "protocol": {"is_error": "always"},  # also "isError": false
        }
    )

    configuration = providers.Singleton(Configuration.from_environment)
    registry_file = providers.Singleton(load_registry, configuration)
    sources = registry_file.provided.registry
    matcher = providers.Singleton(FuzzyMatcher, sources, configuration.provided.keyword_weight)
    tools = providers.Callable(
        tools_of, providers.Singleton(SourceTools, registry_file, matcher, configuration.provided.threshold)
    )
