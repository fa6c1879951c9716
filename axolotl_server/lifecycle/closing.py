"""The end of a container's resources: one after the other, in the reverse of the order that they need each other in."""

import asyncio
import inspect
import logging
from collections.abc import Iterator
from typing import Any, Final

from dependency_injector import containers, providers

_log: Final = logging.getLogger("axolotl")


async def close_resources(container: containers.Container, seconds: float) -> None:
    """Shut every resource down that was started.

    Each has so many seconds. One that fails, or takes longer, is logged; the others are shut down nevertheless.
    """
    names = {id(provider): name for name, provider in container.providers.items()}
    for resource in closing_order(container):
        name = names.get(id(resource), "one without a name")
        try:
            async with asyncio.timeout(seconds):
                outcome: Any = resource.shutdown()
                if inspect.isawaitable(outcome):
                    await outcome
        except TimeoutError:
            _log.error("the resource %s did not close within %g seconds", name, seconds)
        except Exception:
            _log.exception("the resource %s does not close", name)


def closing_order(container: containers.Container) -> list[Any]:
    """Give the resources that were started: what needs another, however indirectly, comes before it.

    Among those that do not need each other the last declared comes first.
    """
    places = {id(provider): place for place, provider in enumerate(container.providers.values())}
    kinds = (providers.BaseResource,)
    open_ones = [one for one in container.traverse(types=kinds) if one.initialized]
    open_ones.sort(key=lambda one: places.get(id(one), -1), reverse=True)
    needs = {id(one): {id(other) for other in one.traverse(types=kinds)} - {id(one)} for one in open_ones}
    return list(_ordered(open_ones, needs))


def _ordered(resources: list[Any], needs: dict[int, set[int]]) -> Iterator[Any]:
    """Give what nobody needs any more, again and again; where resources need each other, the first of them."""
    left = list(resources)
    while left:
        free = (one for one in left if not any(id(one) in needs[id(other)] for other in left if other is not one))
        chosen = next(free, left[0])
        left.remove(chosen)
        yield chosen
