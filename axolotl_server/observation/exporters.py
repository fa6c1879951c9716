"""Where telemetry goes, as the standard variables of OpenTelemetry say."""

import os
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Any, Final, Literal, TypeAlias

from opentelemetry.environment_variables import OTEL_METRICS_EXPORTER, OTEL_TRACES_EXPORTER
from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
    OTEL_EXPORTER_OTLP_PROTOCOL,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
)

from axolotl_core.errors import ConfigurationError

__all__ = ["Signal", "exporters_of"]

Signal: TypeAlias = Literal["traces", "metrics"]

_CHOICE: Final[dict[Signal, str]] = {"traces": OTEL_TRACES_EXPORTER, "metrics": OTEL_METRICS_EXPORTER}
_PROTOCOL: Final[dict[Signal, str]] = {
    "traces": OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
    "metrics": OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
}
_OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def exporters_of(signal: Signal) -> Iterator[Callable[[], Any]]:
    """Give what makes each exporter that is asked for: OTLP over HTTP where nothing is said, none for `none`.

    Raises:
        ConfigurationError: if there is no such exporter.
    """
    variable = _CHOICE[signal]
    names = [name.strip() for name in (os.environ.get(variable) or "otlp").split(",")]
    for name in filter(None, names):
        if name != "none":
            yield _found(_registered_name(name, signal), signal, variable)


def _registered_name(name: str, signal: Signal) -> str:
    if name != "otlp":
        return name
    variable = _PROTOCOL[signal]
    protocol = os.environ.get(variable) or os.environ.get(OTEL_EXPORTER_OTLP_PROTOCOL) or "http/protobuf"
    if protocol not in _OTLP:
        known = ", ".join(_OTLP)
        raise ConfigurationError(f"{variable} or {OTEL_EXPORTER_OTLP_PROTOCOL} is {protocol!r}: use one of {known}")
    return _OTLP[protocol]


def _found(name: str, signal: Signal, variable: str) -> Callable[[], Any]:
    group = f"opentelemetry_{signal}_exporter"
    found = next(iter(entry_points(group=group, name=name)), None)
    if found is None:
        known = ", ".join(sorted({"none", "otlp", *(entry.name for entry in entry_points(group=group))}))
        raise ConfigurationError(
            f"{variable} asks for the exporter {name!r}, which is not installed; there are: {known}"
        )
    try:
        made: Callable[[], Any] = found.load()
    except ImportError as error:
        raise ConfigurationError(f"The exporter {name!r} of {variable} cannot be imported: {error}") from error
    return made
