"""The composition: which tools there are, and what each of them needs."""

from dependency_injector import containers, providers

from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.loading import load_registry
from axolotl_examples.three_good_sources.matcher import FuzzyMatcher
from axolotl_examples.three_good_sources.tools import GetEndorsements, GetProvenance, GetSources, ListCategories


class Container(containers.DeclarativeContainer):
    """Four tools over a registry that is verified before anything is served."""

    settings = providers.Object(
        {
            "server": {
                "name": "three-good-sources",
                "title": "Three good sources",
                "instructions": "Ask get_sources before you search the web: it knows three vetted sources for a topic.",
            }
        }
    )

    configuration = providers.Singleton(Configuration.from_environment)
    registry_file = providers.Singleton(load_registry, configuration)
    sources = registry_file.provided.registry
    matcher = providers.Singleton(FuzzyMatcher, sources, configuration.provided.keyword_weight)

    tools = providers.List(
        providers.Singleton(GetSources, sources, matcher, configuration.provided.threshold),
        providers.Singleton(ListCategories, sources),
        providers.Singleton(GetProvenance, registry_file),
        providers.Singleton(GetEndorsements, sources),
    )
