"""The starter set: which tools there are, and what each of them needs."""

from dependency_injector import containers, providers

from axolotl_examples import keyword_search, three_good_sources
from axolotl_examples.starter.calculate import Calculate
from axolotl_examples.starter.clock import SystemClock
from axolotl_examples.starter.current_time import CurrentTime
from axolotl_examples.starter.echo import Echo
from axolotl_examples.starter.text_statistics import TextStatistics


class Container(containers.DeclarativeContainer):
    """Four small tools with the services they use, and two systems that are tool sets of their own."""

    settings = providers.Object(
        {
            "server": {
                "name": "axolotl-starter",
                "title": "Axolotl starter set",
                "instructions": "Small tools to try a client with; keyword_search looks through the files of the "
                "working directory, and get_sources knows three vetted sources for a topic.",
            }
        }
    )

    clock = providers.Singleton(SystemClock)
    words_per_minute = providers.Object(230)

    tools = providers.List(
        providers.Singleton(Echo),
        providers.Singleton(Calculate),
        providers.Singleton(CurrentTime, clock),
        providers.Singleton(TextStatistics, words_per_minute),
    )

    search = providers.Container(keyword_search.Container)
    sources = providers.Container(three_good_sources.Container)
