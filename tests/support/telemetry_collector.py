"""A telemetry collector on the loopback interface."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Accepts OTLP over HTTP."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []
        self.resources: list[Any] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """The URL for exporters."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def span_names(self) -> list[str]:
        """The names of all received spans."""
        scopes = (scope for one in self.traces for spans in one.resource_spans for scope in spans.scope_spans)
        return [span.name for scope in scopes for span in scope.spans]

    @property
    def metric_names(self) -> set[str]:
        """The names of all received metrics."""
        scopes = (scope for one in self.metrics for found in one.resource_metrics for scope in found.scope_metrics)
        return {metric.name for scope in scopes for metric in scope.metrics}

    @property
    def log_records(self) -> list[Any]:
        """All received log records."""
        scopes = (scope for one in self.logs for found in one.resource_logs for scope in found.scope_logs)
        return [record for scope in scopes for record in scope.log_records]

    @property
    def services(self) -> set[str]:
        """The services that sent traces."""
        attributes = (pair for one in self.traces for spans in one.resource_spans for pair in spans.resource.attributes)
        return {pair.value.string_value for pair in attributes if pair.key == "service.name"}

    def __enter__(self) -> "Collector":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    collector.traces.append(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/logs":
                    collector.logs.append(ExportLogsServiceRequest.FromString(body))
                else:
                    collector.metrics.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler
