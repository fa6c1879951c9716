"""Messages between processes through Redis."""

import asyncio

import pytest

from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer, redis_client


async def test_a_message_that_cannot_be_handled(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """A message that another version of the server may send is logged, and the next ones are received."""
    received: asyncio.Queue[int] = asyncio.Queue()
    async with redis_client(redis.url) as client, asyncio.timeout(PATIENCE_SECONDS):
        subscription = client.subscription("numbers")
        subscription.open(lambda data: received.put_nowait(int(data)), lambda: None)
        await subscription.subscribed()
        for data in (b"1", b"two", b"3"):
            await client.commands.publish("numbers", data)
        assert [await received.get() for _ in range(2)] == [1, 3]
        await subscription.close()
    assert "a message of another process cannot be handled" in caplog.text
