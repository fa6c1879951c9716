"""Assembly of logs, metrics and traces from the settings."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.layers import Layer
from axolotl_server.execution.daemon_thread import run_in_daemon_thread
from axolotl_server.layers.call_ending import current_call
from axolotl_server.observation.metrics import MetricValues
from axolotl_server.observation.observer import OperationObserver, Targets
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import METRICS_PATH

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
        _log.warning("telemetry was not sent within %g seconds; the rest is lost", seconds)


FLUSH_SECONDS: Final = 2.0
"""How long a shutdown waits for telemetry to be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The telemetry of a server that has any."""

    layers: Sequence[Layer]
    values: MetricValues
    observer: OperationObserver | None = None
    """None if only log messages need to know the current call."""
    spans: "Spans | None" = None
    """None if nothing is traced."""
    page: "MetricsPage | None" = None
    flushes: Sequence[Callable[[], object]] = ()
    """Functions that block until everything is sent."""
    on_close: list[Callable[[], object]] = field(default_factory=list)
    sends_logs: bool = False

    def watch_refusals(self, refused: Mapping[int, int]) -> None:
        """Count the HTTP requests that an application refuses, by status."""
        self.values.add_reader(
            "axolotl.http.refusals", lambda: [((str(status),), count) for status, count in tuple(refused.items())]
        )

    async def close(self) -> None:
        """Send the remaining telemetry if there was any request, and release the server."""
        if self.flushes and (self.sends_logs or self.values.operations.read()):
            await flush(self.flushes, FLUSH_SECONDS)
        for close in self.on_close:
            close()


def make_observation(
    settings: ServerSettings, feature_methods: "Callable[[], Mapping[str, FeatureMethod]]"
) -> Observation:
    """Make the telemetry; raises ConfigurationError if a library is missing or an exporter cannot be made."""
    telemetry, values = settings.telemetry, MetricValues()
    layers: list[Layer] = [current_call] if settings.log.format == "json" or telemetry.logs else []
    flushes: list[Callable[[], object]] = []
    on_close: list[Callable[[], object]] = []
    if telemetry.logs:
        _send_logs(settings, flushes, on_close)
    if not (telemetry.traces or telemetry.metrics or settings.metrics.enabled):
        return Observation(
            layers=layers,
            values=values,
            flushes=flushes,
            on_close=on_close,
            sends_logs=telemetry.logs,
        )
    page = _page(settings, values) if settings.metrics.enabled else None
    try:
        spans = _spans(settings, flushes) if telemetry.traces else None
        if telemetry.metrics:
            _send(settings, values, flushes, on_close)
    except ImportError as error:
        raise ConfigurationError.missing_extra("Section telemetry", "otel") from error
    observer = OperationObserver(values, Targets(feature_methods), spans)
    return Observation(
        layers=layers,
        values=values,
        observer=observer,
        spans=spans,
        page=page,
        flushes=flushes,
        on_close=on_close,
        sends_logs=telemetry.logs,
    )


def _send_logs(
    settings: ServerSettings, flushes: list[Callable[[], object]], on_close: list[Callable[[], object]]
) -> None:
    """Send the records of all loggers from now on."""
    try:
        from axolotl_server.observation.otel_logs import OtelHandler, logger_provider

        provider = logger_provider(settings.server)
    except ImportError as error:
        if error.name is not None and error.name.startswith("opentelemetry.sdk._logs"):  # not a stable API yet
            raise ConfigurationError(
                "Setting telemetry.logs does not work with the installed version of opentelemetry-sdk: install 1.45, "
                "or turn the setting off"
            ) from error
        raise ConfigurationError.missing_extra("Setting telemetry.logs", "otel") from error
    _add_flush(provider, flushes)
    handler = OtelHandler(provider, subject=settings.log.subject)
    logging.getLogger().addHandler(handler)
    on_close.append(lambda: logging.getLogger().removeHandler(handler))


def _page(settings: ServerSettings, values: MetricValues) -> "MetricsPage":
    if METRICS_PATH in (settings.http.path, settings.http.sse_path):
        raise ConfigurationError(f"{METRICS_PATH} is the path of the metrics: choose another path for the MCP endpoint")
    try:
        from axolotl_server.observation.prometheus import MetricsPage
    except ImportError as error:
        raise ConfigurationError.missing_extra("Setting metrics.enabled", "metrics") from error
    return MetricsPage(values, {"worker": str(os.getpid())} if settings.http.workers > 1 else None)


def _spans(settings: ServerSettings, flushes: list[Callable[[], object]]) -> "Spans":
    from axolotl_server.observation.otel import Spans, tracer_provider

    provider = tracer_provider(settings.server)
    _add_flush(provider, flushes)
    return Spans(provider)


def _send(
    settings: ServerSettings,
    values: MetricValues,
    flushes: list[Callable[[], object]],
    on_close: list[Callable[[], object]],
) -> None:
    from axolotl_server.observation.otel import meter_provider
    from axolotl_server.observation.otel_metrics import instruments_of

    provider = meter_provider(settings.server)
    _add_flush(provider, flushes)
    instruments = instruments_of(provider)
    instruments.add(values)
    on_close.append(lambda: instruments.remove(values))


def _add_flush(provider: object, flushes: list[Callable[[], object]]) -> None:
    force_flush = getattr(provider, "force_flush", None)
    if force_flush is not None:
        flushes.append(force_flush)
