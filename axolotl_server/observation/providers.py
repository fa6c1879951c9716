"""The providers of OpenTelemetry: those that the process has, else one that is made by its standard variables."""

from typing import Any

from opentelemetry import metrics, trace

from axolotl_core.errors import ConfigurationError
from axolotl_server.observation.exporters import exporters_of
from axolotl_server.settings import ServerIdentity

__all__ = ["meter_provider", "tracer_provider"]


def tracer_provider(identity: ServerIdentity) -> trace.TracerProvider:
    """Give the provider of tracers; one that is made here is the process's own from then on.

    It is never shut down: the process may have other servers, and what is left at its end was flushed by them.

    Raises:
        ConfigurationError: if an exporter cannot be made.
    """
    current = trace.get_tracer_provider()
    if not isinstance(current, trace.ProxyTracerProvider):
        return current
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=_resource(identity), shutdown_on_exit=False)
    for make in exporters_of("traces"):
        provider.add_span_processor(BatchSpanProcessor(_made(make)))
    trace.set_tracer_provider(provider)
    return provider


def meter_provider(identity: ServerIdentity) -> metrics.MeterProvider:
    """Give the provider of meters, in the same way.

    Raises:
        ConfigurationError: if an exporter cannot be made.
    """
    current = metrics.get_meter_provider()
    if type(current).__name__ != "_ProxyMeterProvider":  # which has no public name, other than that of tracers
        return current
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    made = [_made(make) for make in exporters_of("metrics")]
    readers = [one if isinstance(one, MetricReader) else PeriodicExportingMetricReader(one) for one in made]
    provider = MeterProvider(readers, resource=_resource(identity), shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    return provider


def _made(make: Any) -> Any:
    try:
        return make()
    except Exception as error:
        raise ConfigurationError(f"The exporter {make.__name__} cannot be made: {error}") from error


def _resource(identity: ServerIdentity) -> Any:
    """Say who sends: what the variables say, and the server's own name where they say none."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

    said = Resource.create({})
    if str(said.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        said = said.merge(Resource({SERVICE_NAME: identity.name}))
    return Resource({SERVICE_VERSION: identity.version}).merge(said)
