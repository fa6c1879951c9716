"""The Redis client that the settings configure."""

import sys

import pytest
from pydantic import SecretStr

from axolotl_core import ConfigurationError
from axolotl_server.hosting.assembly import ServerAssembly, load_redis
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.server import RedisSettings, ServerSettings


def redis_of(settings: RedisSettings) -> object:
    """Return the client that a server with these settings has."""
    return ServerAssembly(ServerSettings(redis=settings), Roles()).redis


def test_no_url_no_client() -> None:
    """Without a URL, the library is not imported and no client is created."""
    load_redis(RedisSettings())
    assert redis_of(RedisSettings()) is None


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a Redis is configured but the library is not installed, the error names the extra to install."""
    monkeypatch.delitem(sys.modules, "axolotl_server.stores.redis_client", raising=False)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    settings = RedisSettings(url=SecretStr("redis://127.0.0.1:1"))
    for make in (load_redis, redis_of):
        with pytest.raises(ConfigurationError, match=r"redis\.url needs the extra redis: pip install 'redis>=6'$"):
            make(settings)
