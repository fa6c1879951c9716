"""The starter set: which tools there are, and what each of them needs."""

from dependency_injector import containers, providers

from axolotl_examples.starter.calculate import Calculate
from axolotl_examples.starter.clock import SystemClock
from axolotl_examples.starter.current_time import CurrentTime
from axolotl_examples.starter.echo import Echo
from axolotl_examples.starter.text_statistics import TextStatistics

__all__ = ["Container"]


class Container(containers.DeclarativeContainer):
    """Four small tools and the services they use."""

    settings = providers.Object(
        {
            "server": {
                "name": "axolotl-starter",
                "title": "Axolotl starter set",
                "instructions": "Small tools to try a client with: echo, arithmetic, the time, and counting words.",
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
