"""The order in which container resources are closed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from dependency_injector import containers, providers
from hypothesis import given
from hypothesis import strategies as st

from axolotl_server import ServerHost
from axolotl_server.execution.closing import close_resources, closing_order
from tests.support.tools import Echo, container_of


def noting(notes: list[str], name: str, needs: Any = None) -> Iterator[str]:
    """A resource that records its end."""
    yield name
    notes.append(name)


async def noting_later(notes: list[str], name: str, needs: Any = None) -> AsyncIterator[str]:
    """An asynchronous one."""
    yield name
    await asyncio.sleep(0)
    notes.append(name)


async def started(container: Any) -> Any:
    """Start all resources of a container."""
    starting = container.init_resources()
    if starting is not None:
        await starting
    return container


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 20), max_size=3)), max_size=8))
async def test_resources_are_closed_before_their_dependencies(plan: list[tuple[bool, list[int]]]) -> None:
    """A resource is closed before its direct and indirect dependencies."""
    notes: list[str] = []
    container = containers.DynamicContainer()
    needed: dict[str, set[str]] = {}
    for number, (waits, wanted) in enumerate(plan):
        name = f"r{number}"
        needed[name] = {f"r{one % number}" for one in wanted} if number else set()
        through: providers.Singleton[dict[str, Any]] = providers.Singleton(
            dict, **{one: getattr(container, one) for one in needed[name]}
        )
        provider = providers.Resource(noting_later if waits else noting, notes, name, through)
        setattr(container, name, provider)
    await close_resources(await started(container), 5)
    assert sorted(notes) == sorted(needed)
    for name, others in needed.items():
        assert all(notes.index(name) < notes.index(other) for other in others)


async def test_the_last_declared_is_closed_first() -> None:
    """Independent resources are closed in reverse order of declaration."""
    notes: list[str] = []

    container = containers.DynamicContainer()
    container.first = providers.Resource(noting, notes, "first")
    container.second = providers.Resource(noting_later, notes, "second")
    container.third = providers.Resource(noting, notes, "third")
    await close_resources(await started(container), 5)
    assert notes == ["third", "second", "first"]


async def test_a_resource_that_was_not_started_is_not_closed() -> None:
    """A resource that was not started is not closed."""
    container = containers.DynamicContainer()
    container.one = providers.Resource(noting, [], "one")
    assert closing_order(container) == []


async def test_a_resource_that_fails_to_close_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    """A resource that fails or times out is logged by name, and all others are closed."""
    notes: list[str] = []

    def failing() -> Iterator[None]:
        yield
        raise OSError("no")

    async def endless() -> AsyncIterator[None]:
        yield
        await asyncio.Event().wait()

    container = containers.DynamicContainer()
    container.below = providers.Resource(noting, notes, "below")
    container.broken = providers.Resource(failing)
    container.stuck = providers.Resource(endless)
    await close_resources(await started(container), 0.01)
    assert notes == ["below"]
    assert "resource broken could not be closed" in caplog.text
    assert "resource stuck did not close within 0.01 seconds" in caplog.text


async def test_a_failed_close_does_not_stop_the_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    """If a part of the server cannot be closed, it is logged, and the container's resources are closed."""
    notes: list[str] = []
    container = container_of(Echo())
    container.base = providers.Resource(noting, notes, "base")

    def fail() -> None:
        raise OSError("no")

    async with ServerHost(container) as host:
        host.on_stop(fail)
    assert notes == ["base"]
    assert "stopping: objects made to serve it failed to close" in caplog.text


async def test_a_cancelled_shutdown_closes_all_resources() -> None:
    """A canceled shutdown still closes all resources."""
    notes: list[str] = []
    container = container_of(Echo())
    container.base = providers.Resource(noting, notes, "base")
    host = ServerHost(container)
    await host.start()
    reached = asyncio.Event()

    async def wait() -> None:
        reached.set()
        await asyncio.Event().wait()

    host.on_stop(wait)
    stopping = asyncio.ensure_future(host.stop())
    await reached.wait()
    stopping.cancel()
    await asyncio.wait((stopping,))
    assert stopping.cancelled()
    assert notes == ["base"]
