"""Making an observation of what the settings ask for."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from axolotl_core.errors import ConfigurationError
from axolotl_core.layers import ILayer
from axolotl_server.layers.call_ending import CurrentCallLayer
from axolotl_server.lifecycle.daemon_thread import run_in_daemon_thread
from axolotl_server.observation.metrics import MetricValues
from axolotl_server.observation.observer import OperationObserver, Targets
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.calls.feature_method import FeatureMethod
    from axolotl_server.observation.otel import Spans
    from axolotl_server.observation.prometheus import MetricsPage

_log = logging.getLogger("axolotl")


async def flush(senders: Sequence[Callable[[], object]], seconds: float) -> None:
    """Call functions that block until telemetry is sent, each in a thread, and wait for them up to a time limit.

    They are daemon threads: an exporter retries for minutes if nobody listens.
    """
    flushing = asyncio.gather(
        *(run_in_daemon_thread("axolotl-flush", send) for send in senders), return_exceptions=True
    )
    try:
        async with asyncio.timeout(seconds):
            for outcome in await flushing:
                if isinstance(outcome, Exception):
                    _log.warning("telemetry could not be flushed: %s", type(outcome).__name__)
    except TimeoutError:
        _log.warning("telemetry was not sent within %g seconds; what is left of it is lost", seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Composed when a server starts; where nothing is observed there is none of it."""

    layers: Sequence[ILayer]
    numbers: MetricValues
    observer: OperationObserver | None = None
    """None where only log messages want to know of calls."""
    page: "MetricsPage | None" = None
    flushes: Sequence[Callable[[], object]] = ()
    """What blocks until everything is sent."""
    flush_seconds: float = 0.0
    endings: list[Callable[[], object]] = field(default_factory=list)

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


def make_observation(
    settings: ServerSettings, feature_methods: "Callable[[], Mapping[str, FeatureMethod]]"
) -> Observation:
    """Make what is asked for.

    Raises:
        ConfigurationError: if something for it is not installed, or an exporter cannot be made.
    """
    layers: list[ILayer] = [CurrentCallLayer()] if settings.log.format == "json" else []
    said, numbers = settings.telemetry, MetricValues()
    if not (said.traces or said.metrics or settings.metrics.enabled):
        return Observation(layers=layers, numbers=numbers)
    page = _page(settings, numbers) if settings.metrics.enabled else None
    flushes: list[Callable[[], object]] = []
    endings: list[Callable[[], object]] = []
    try:
        spans = _spans(settings, flushes) if said.traces else None
        if said.metrics:
            _send(settings, numbers, flushes, endings)
    except ImportError as error:
        raise _missing("telemetry", "OpenTelemetry", "otel") from error
    observer = OperationObserver(numbers, Targets(feature_methods), spans)
    return Observation(
        layers=layers,
        numbers=numbers,
        observer=observer,
        page=page,
        flushes=flushes,
        flush_seconds=said.flush_seconds,
        endings=endings,
    )


def _page(settings: ServerSettings, numbers: MetricValues) -> "MetricsPage":
    http, path = settings.http, settings.metrics.path
    if path in (http.path, http.sse_path):
        raise ConfigurationError(f"metrics.path is {path}, where the MCP endpoint is: choose another path")
    try:
        from axolotl_server.observation.prometheus import MetricsPage
    except ImportError as error:
        raise _missing("metrics.enabled", "prometheus-client", "metrics") from error
    return MetricsPage(numbers, {"worker": str(os.getpid())} if http.workers > 1 else None)


def _spans(settings: ServerSettings, flushes: list[Callable[[], object]]) -> "Spans":
    from axolotl_server.observation.otel import Spans, tracer_provider

    provider = tracer_provider(settings.server)
    _flush_later(provider, flushes)
    return Spans(provider)


def _send(
    settings: ServerSettings,
    numbers: MetricValues,
    flushes: list[Callable[[], object]],
    endings: list[Callable[[], object]],
) -> None:
    from axolotl_server.observation.otel import instruments_of, meter_provider

    provider = meter_provider(settings.server)
    _flush_later(provider, flushes)
    instruments = instruments_of(provider)
    instruments.add(numbers)
    endings.append(lambda: instruments.remove(numbers))


def _flush_later(provider: object, flushes: list[Callable[[], object]]) -> None:
    """Remember how a provider is flushed, if it can be."""
    force_flush = getattr(provider, "force_flush", None)
    if force_flush is not None:
        flushes.append(force_flush)


def _missing(setting: str, what: str, extra: str) -> ConfigurationError:
    return ConfigurationError(f"{setting} needs {what}: pip install 'axolotl-mcp[{extra}]'")
