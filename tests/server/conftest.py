"""Fixtures for all tests of the server."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
import pytest_asyncio

from tests.support.servers.observed_server import telemetry
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer

__all__ = ["telemetry"]


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """One Redis for all tests, which use different prefixes; tests that stop a Redis start their own."""
    with RedisServer() as server:
        yield server


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client
