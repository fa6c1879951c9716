"""The container of the starter tools and their services."""

from datetime import datetime

from dependency_injector import containers, providers

from axolotl_core import tools_of
from axolotl_examples import keyword_search, three_good_sources
from axolotl_examples.starter.calculate import calculate
from axolotl_examples.starter.current_time import CurrentTime
from axolotl_examples.starter.text import Reader, echo


class Container(containers.DeclarativeContainer):
    """Four small tools with their services, and two subcontainers with more tools."""

    settings = providers.Object(
        {
            "server": {
                "name": "axolotl-starter",
                "title": "Axolotl starter set",
                "instructions": "Small tools for trying out a client. keyword_search searches the files in the "
                "working directory; get_sources returns three vetted sources for a topic.",
            }
        }
    )

    now = providers.Object(datetime.now)
    words_per_minute = providers.Object(230)

    tools = providers.List(
        providers.Object(echo),
        providers.Object(calculate),
        providers.Singleton(CurrentTime, now),
        providers.Callable(tools_of, providers.Singleton(Reader, words_per_minute)),
    )

    search = providers.Container(keyword_search.Container)
    sources = providers.Container(three_good_sources.Container)
