"""Logs, metrics and traces of a server, made from the settings."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

from axolotl_core.errors import ConfigurationError
from axolotl_core.layers import Layer
from axolotl_server.execution.threads import run_in_daemon_thread
from axolotl_server.layers.call_ending import current_call
from axolotl_server.observation.metrics import MetricValues
from axolotl_server.observation.observer import OperationObserver
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import METRICS_PATH

if TYPE_CHECKING:
    from axolotl_server.calls.feature_method import FeatureMethod
    from axolotl_server.observation.otel import Spans
    from axolotl_server.observation.prometheus import MetricsPage

_log = logging.getLogger("axolotl")

Provider = TypeVar("Provider")


FLUSH_SECONDS: Final = 2.0
"""How long a shutdown waits for telemetry to be sent."""


class Observation:
    """The telemetry of a server that has any."""

    def __init__(self, settings: ServerSettings, feature_methods: "Callable[[], Mapping[str, FeatureMethod]]") -> None:
        """Raises ConfigurationError if a library is missing or an exporter cannot be made."""
        telemetry = settings.telemetry
        self.values = MetricValues()
        self.layers: Sequence[Layer] = [current_call] if settings.log.format == "json" or telemetry.logs else []
        self.observer: OperationObserver | None = None
        """None if only log messages need to know the current call."""
        self.spans: Spans | None = None
        """None if nothing is traced."""
        self.page: MetricsPage | None = None
        self._sends_logs = telemetry.logs
        self._flushes: list[Callable[[], object]] = []
        """Functions that block until everything is sent."""
        self._closing = ExitStack()
        if telemetry.logs:
            self._send_logs(settings)
        if settings.metrics.enabled:
            self.page = _page(settings, self.values)
        try:
            if telemetry.traces:
                from axolotl_server.observation import otel

                self.spans = otel.Spans(self._flushed(otel.tracer_provider(settings.server)))
            if telemetry.metrics:
                from axolotl_server.observation import otel

                instruments = otel.instruments_of(self._flushed(otel.meter_provider(settings.server)))
                instruments.add(self.values)
                self._closing.callback(instruments.remove, self.values)
        except ImportError as error:
            raise ConfigurationError.missing_extra("Section telemetry", "otel") from error
        if telemetry.traces or telemetry.metrics or settings.metrics.enabled:
            self.observer = OperationObserver(self.values, feature_methods, self.spans)

    def watch_refusals(self, refused: Mapping[int, int]) -> None:
        """Count the HTTP requests that an application refuses, by status."""
        self.values.add_reader(
            "axolotl.http.refusals", lambda: [((str(status),), count) for status, count in tuple(refused.items())]
        )

    async def close(self) -> None:
        """Send the remaining telemetry if there was any request, and release the server."""
        if self._flushes and (self._sends_logs or self.values.operations.read()):
            await self._flush()
        self._closing.close()

    async def _flush(self) -> None:
        # In daemon threads, because an exporter retries for minutes if nobody listens.
        flushes = (run_in_daemon_thread("axolotl-flush", flush) for flush in self._flushes)
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                for outcome in await asyncio.gather(*flushes, return_exceptions=True):
                    if isinstance(outcome, Exception):
                        _log.warning("telemetry could not be flushed: %s", type(outcome).__name__)
        except TimeoutError:
            _log.warning("telemetry was not sent within %g seconds; the rest is lost", FLUSH_SECONDS)

    def _send_logs(self, settings: ServerSettings) -> None:
        """Send the records of all loggers from now on."""
        try:
            from axolotl_server.observation.otel import OtelHandler, logger_provider

            provider = logger_provider(settings.server)
        except ImportError as error:
            if error.name is not None and error.name.startswith("opentelemetry.sdk._logs"):  # not a stable API yet
                raise ConfigurationError(
                    "Setting telemetry.logs does not work with the installed version of opentelemetry-sdk: install "
                    "1.45, or turn the setting off"
                ) from error
            raise ConfigurationError.missing_extra("Setting telemetry.logs", "otel") from error
        handler = OtelHandler(self._flushed(provider), subject=settings.log.subject)
        logging.getLogger().addHandler(handler)
        self._closing.callback(logging.getLogger().removeHandler, handler)

    def _flushed(self, provider: Provider) -> Provider:
        """Flush a provider when the server stops, if it can be flushed."""
        force_flush = getattr(provider, "force_flush", None)
        if force_flush is not None:
            self._flushes.append(force_flush)
        return provider


def _page(settings: ServerSettings, values: MetricValues) -> "MetricsPage":
    if METRICS_PATH in (settings.http.path, settings.http.sse_path):
        raise ConfigurationError(f"{METRICS_PATH} is the path of the metrics: choose another path for the MCP endpoint")
    try:
        from axolotl_server.observation.prometheus import MetricsPage
    except ImportError as error:
        raise ConfigurationError.missing_extra("Setting metrics.enabled", "metrics") from error
    return MetricsPage(values, {"worker": str(os.getpid())} if settings.http.workers > 1 else {})
