"""Making an observation of what the settings ask for."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from axolotl_core.errors import ConfigurationError
from axolotl_core.layer import ILayer
from axolotl_server.layers.current_call import CurrentCallLayer
from axolotl_server.layers.outcome import OutcomeLayer
from axolotl_server.observation.numbers import Numbers
from axolotl_server.observation.observation import Observation
from axolotl_server.observation.observer import Observer
from axolotl_server.settings import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.observation.prometheus import MetricsPage
    from axolotl_server.observation.spans import Spans

__all__ = ["make_observation"]


def make_observation(settings: ServerSettings) -> Observation:
    """Make what is asked for.

    Raises:
        ConfigurationError: if something for it is not installed, or an exporter cannot be made.
    """
    layers: list[ILayer] = [CurrentCallLayer()] if settings.log.format == "json" else []
    said, numbers = settings.telemetry, Numbers()
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
    observer = Observer(numbers, spans)
    return Observation(
        layers=[OutcomeLayer(observer), *layers],
        numbers=numbers,
        observer=observer,
        page=page,
        flushes=flushes,
        flush_seconds=said.flush_seconds,
        endings=endings,
    )


def _page(settings: ServerSettings, numbers: Numbers) -> "MetricsPage":
    http, path = settings.http, settings.metrics.path
    if path in (http.path, http.sse_path):
        raise ConfigurationError(f"metrics.path is {path}, where the MCP endpoint is: choose another path")
    try:
        from axolotl_server.observation.prometheus import MetricsPage
    except ImportError as error:
        raise _missing("metrics.enabled", "prometheus-client", "metrics") from error
    return MetricsPage(numbers, {"worker": str(os.getpid())} if http.workers > 1 else None)


def _spans(settings: ServerSettings, flushes: list[Callable[[], object]]) -> "Spans":
    from axolotl_server.observation.providers import tracer_provider
    from axolotl_server.observation.spans import Spans

    provider = tracer_provider(settings.server)
    _flush_later(provider, flushes)
    return Spans(provider)


def _send(
    settings: ServerSettings,
    numbers: Numbers,
    flushes: list[Callable[[], object]],
    endings: list[Callable[[], object]],
) -> None:
    from axolotl_server.observation.instruments import instruments_of
    from axolotl_server.observation.providers import meter_provider

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
