from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.health import HealthStatus, IHealthCheck


class Database:
    """A stand-in for your database."""

    lag_seconds = 0.0
    loaded = True

    async def measure_lag(self) -> float:
        return self.lag_seconds


class DatabaseCheck(IHealthCheck):
    name = "database"
    timeout_seconds = 1.0

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> HealthStatus | None:
        lag = await self._database.measure_lag()
        if lag > 60:
            return HealthStatus.failed("the replica is more than a minute behind")
        return HealthStatus.degraded("the replica is behind") if lag > 5 else None


class PricesLoaded(IHealthCheck):
    name = "prices"
    affects = "startup"

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> HealthStatus | None:
        return None if self._database.loaded else HealthStatus.failed("still loading")


@tool
async def price_of(article: str) -> int:
    """Look up a price in cents."""
    return 100 * len(article)


class Container(containers.DeclarativeContainer):
    database = providers.Singleton(Database)
    tools = providers.List(providers.Object(price_of))
    health_checks = providers.List(
        providers.Singleton(DatabaseCheck, database),
        providers.Singleton(PricesLoaded, database),
    )
