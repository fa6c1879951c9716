"""Fixtures for all tests of the server."""

from collections.abc import Iterator

import pytest

from tests.support.servers.observed_server import telemetry
from tests.support.stores.redis_server import RedisServer

__all__ = ["telemetry"]


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """One Redis for all tests, which use different prefixes; tests that stop a Redis start their own."""
    with RedisServer() as server:
        yield server
