"""What a server has around it to be observed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from axolotl_core.layer import ILayer
from axolotl_server.eras.base import IEra, Methods
from axolotl_server.observation.flushing import flush
from axolotl_server.observation.numbers import Numbers
from axolotl_server.observation.observer import Observer

if TYPE_CHECKING:
    from axolotl_server.observation.prometheus import MetricsPage
    from axolotl_server.observation.targets import IFeatures

__all__ = ["Observation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Composed when a server starts; where nothing is observed there is none of it."""

    layers: Sequence[ILayer]
    """They stand outside of all others, the record of the audit included."""
    numbers: Numbers
    observer: Observer | None = None
    """None where only log messages want to know of calls."""
    page: "MetricsPage | None" = None
    flushes: Sequence[Callable[[], object]] = ()
    """What blocks until everything is sent."""
    flush_seconds: float = 0.0
    endings: list[Callable[[], object]] = field(default_factory=list)

    def observe(self, methods: Methods, features: "IFeatures") -> Methods:
        """Stand in front of methods, where operations are observed."""
        return methods if self.observer is None else self.observer.observe(methods, features)

    def observe_admission(self, eras: Iterable[IEra]) -> None:
        """Note the requests, too, that come to no method."""
        for era in eras:
            if self.observer is not None:
                self.observer.observe_admission(era)

    def watch_refusals(self, refused: Mapping[int, int]) -> None:
        """Count the HTTP requests that an application refuses, by status."""
        self.numbers.watch(
            "axolotl.http.refusals", lambda: [((str(status),), count) for status, count in tuple(refused.items())]
        )

    async def close(self) -> None:
        """Send what is not sent yet, if there was ever anything to tell, and let go of the server."""
        if self.flushes and self.numbers.operations.read():
            await flush(self.flushes, self.flush_seconds)
        for end in self.endings:
            end()
