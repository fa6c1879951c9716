"""What lies in a user's container: the providers of a role at any depth, and what they give."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dependency_injector import providers

from axolotl_core.errors import ConfigurationError

__all__ = ["flat", "resolved", "sources_of"]


def sources_of(container: Any, role: str, within: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """Walk the providers of a role with the name of the set they belong to, None for those outside any set.

    A set is a part of an aggregate, or a sub-container at any depth.
    """
    prefix = "" if within is None else f"{within}."
    for name, provider in container.providers.items():
        if name == role and isinstance(provider, providers.Aggregate):
            yield from ((f"{prefix}{part}", source) for part, source in provider.providers.items())
        elif name == role:
            yield within, provider
        elif isinstance(provider, providers.Container):
            yield from sources_of(provider, role, f"{prefix}{name}")


async def resolved(provider: Any) -> Any:
    """Have a provider give what it provides.

    Raises:
        ConfigurationError: if it fails.
    """
    try:
        value = provider()
        return await value if inspect.isawaitable(value) else value
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"A provider of the container fails: {type(error).__name__}: {error}") from error


def flat(value: Any) -> Iterator[Any]:
    """Give the single things in a nest of lists."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        for item in value:
            yield from flat(item)
    else:
        yield value
