"""The examples of the page about health checks and shutdown."""

import importlib
from typing import Any

from axolotl_server import ServerHost
from axolotl_server.health import make_health


async def test_healthy() -> None:
    """Readiness depends on the database, and startup on the prices."""
    container: Any = importlib.import_module("healthy").Container()
    async with ServerHost(container, flags={"health": {"cache_seconds": 0}}) as host:
        health, database = make_health(host), container.database()
        database.loaded = False
        assert (await health.startup()).state == "failed"
        assert (await health.readiness()).state == "failed"
        database.loaded = True
        assert (await health.readiness()).state == "ok"
        for lag, state in ((10.0, "degraded"), (100.0, "failed"), (0.0, "ok")):
            database.lag_seconds = lag
            assert (await health.readiness()).state == state
        assert health.liveness().state == "ok"
