"""What an operator can say about logs, traces and metrics."""

from typing import Literal

from pydantic import Field

from axolotl_server.settings_section import Section

__all__ = ["LogSettings", "MetricsSettings", "TelemetrySettings"]


class LogSettings(Section):
    """How the log is written; it goes to the standard error stream in any case."""

    format: Literal["console", "json"] = "console"
    """Lines for people, or one JSON object a line."""
    subject: bool = False
    """Whether JSON lines about a call name the subject of its principal."""


class TelemetrySettings(Section):
    """What is sent by OpenTelemetry; where to, the standard `OTEL_*` variables say."""

    traces: bool = False
    """Whether every operation is a span."""
    metrics: bool = False
    """Whether numbers are sent."""
    flush_seconds: float = Field(2.0, ge=0)
    """How long the end of the server waits until everything is sent."""


class MetricsSettings(Section):
    """The page that Prometheus reads, over HTTP."""

    enabled: bool = False
    """Whether there is such a page."""
    path: str = Field("/metrics", pattern=r"^/")
    """Where it is."""
