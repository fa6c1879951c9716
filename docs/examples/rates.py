import asyncio
import logging
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dependency_injector import containers, providers
from pydantic import Field, SecretStr

from axolotl_core import Context, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.health import HealthStatus, IHealthCheck
from axolotl_core.layers import Call, Invoke, Layer
from axolotl_server import Extension, Section, connect

if TYPE_CHECKING:
    from axolotl_server.extension import ExtensionMethod
    from axolotl_server.hosting.assembly import ServerAssembly

log = logging.getLogger("rates")


# region section
class RateSettings(Section):
    """The section [extensions.rates]."""

    base: str = Field(pattern="^[A-Z]{3}$")
    refresh_seconds: float = Field(60, gt=0)
    token: SecretStr | None = None


# endregion section


# region extension
class Rates(Extension):
    """Keeps exchange rates up to date, and gives them to clients."""

    identifier = "com.example/rates"
    section = "rates"
    section_model = RateSettings

    def attach(self, server: "ServerAssembly", section: RateSettings) -> None:
        self.base, self._seconds = section.base, section.refresh_seconds
        self.known: dict[str, float] = {}
        self.refreshing: asyncio.Task[None] | None = None

    @property
    def methods(self) -> "Mapping[str, ExtensionMethod]":
        return {"rates/get": self.get}

    async def get(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"base": self.base, "rates": self.known}

    def layers(self) -> Iterable[Layer]:
        return (self.time,)

    def time(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def timed(call: Call) -> Any:
            began = perf_counter()
            try:
                return await call_next(call)
            finally:
                log.info("%s %s took %.0f s", spec.kind, spec.name, perf_counter() - began)

        return timed

    def health_checks(self) -> Iterable[IHealthCheck]:
        yield RatesAreKnown(self)

    async def start(self) -> None:
        self.refreshing = asyncio.create_task(self._refresh())

    def pause(self) -> None:
        if self.refreshing is not None:
            self.refreshing.cancel()

    async def stop(self) -> None:
        if self.refreshing is not None:
            self.refreshing.cancel()
            await asyncio.wait((self.refreshing,))

    async def _refresh(self) -> None:
        while True:
            self.known = {"EUR": 1.0, "USD": 1.1}  # from a service, with the token
            await asyncio.sleep(self._seconds)


class RatesAreKnown(IHealthCheck):
    """Says that rates are missing."""

    name = "rates"

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    async def check(self) -> HealthStatus | None:
        return None if self._rates.known else HealthStatus.degraded("no rates are known")


# endregion extension


# region container
@tool
async def convert(amount: float) -> float:
    """Convert an amount."""
    return amount * 1.1


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(convert))
    extensions = providers.List(providers.Singleton(Rates))


# endregion container


async def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    logging.getLogger("axolotl").setLevel(logging.WARNING)
    settings = {"extensions": {"rates": {"base": "EUR"}}}
    known = {"extensions": {"com.example/rates": {}}}
    async with connect(Container(), settings=settings, capabilities=known) as client:
        print((await client.request("rates/get", {}))["rates"])
        print((await client.call("convert", {"amount": 2})).structured)


if __name__ == "__main__":
    asyncio.run(main())
