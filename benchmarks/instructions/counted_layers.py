"""The servers whose layers are counted: the same tool with one layer after the other, and with most of them."""

import time
from pathlib import Path
from typing import Any, Final

import jwt
from dependency_injector import containers, providers
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from axolotl_core import ToolAnnotations
from axolotl_server import ServerHost, host
from axolotl_server.http import admission
from benchmarks.instructions.comparison import AUTHORIZATION, PLAIN, READ_ONLY, TOGETHER
from benchmarks.servers.axolotl_add import Add, Container

_ISSUER: Final = "https://issuer.example"
_SECRET: Final = "a secret of thirty-two characters"
_OTHERS: Final = [
    {"name": f"rule {number}", "effect": "allow", "who": {"roles": [f"role {number}"]}} for number in range(9)
]
_RULES: Final = [*_OTHERS, {"name": "everybody", "effect": "allow", "what": {"names": ["add"]}}]
_QUOTAS: Final = {
    "user": {"per": ["principal"], "rate_per_second": 1e6, "burst": 1e6},
    "day": {"per": ["tenant", "tool"], "limit": 1e9, "window": "day"},
}
_RESOURCE: Final = "http://127.0.0.1:8000/mcp"
_AUTH: Final = {"issuers": [_ISSUER], "resource": _RESOURCE, "hmac_secret": _SECRET}
_METRICS: Final = {"enabled": True}
_PATIENCE_SECONDS: Final = 3600.0


def be_patient() -> None:
    """Under valgrind everything is slow: the watchdog would report a blocked event loop, and requests be refused."""
    vars(host)["STALL_SECONDS"] = vars(admission)["MAX_LAG_SECONDS"] = _PATIENCE_SECONDS


class ReadOnlyAdd(Add):
    """Adds two integers, and says that it changes nothing."""

    annotations = ToolAnnotations(read_only=True)


class ReadOnlyContainer(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(ReadOnlyAdd))


def token() -> str:
    """Sign a token that is valid for an hour."""
    claims = {"iss": _ISSUER, "aud": _RESOURCE, "sub": "ada", "exp": int(time.time()) + 3600}
    return jwt.encode(claims, _SECRET, "HS256")


def layered_hosts(directory: Path) -> dict[str, ServerHost]:
    """Make a server for each layer, and one with most of them; those with `auth` need the token."""
    # Telemetry is aggregated, but not sent: an exporter works in a thread of its own.
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False))
    trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
    read_only = {"audit": _audit(directory / "read-only.jsonl")}
    made = {name: ServerHost(Container(), flags=flags) for name, flags in _settings(directory).items()}
    return {**made, READ_ONLY: ServerHost(ReadOnlyContainer(), flags=read_only)}


def _settings(directory: Path) -> dict[str, dict[str, Any]]:
    authorization, quotas = {"rules": _RULES}, {"rules": _QUOTAS}
    return {
        PLAIN: {},
        AUTHORIZATION: {"authorization": authorization},
        "quota, 2 rules": {"quotas": quotas},
        "token, known": {"auth": _AUTH},
        "metrics page": {"metrics": _METRICS},
        "OTel metrics": {"telemetry": {"metrics": True}},
        "OTel traces": {"telemetry": {"traces": True}},
        "audit log": {"audit": _audit(directory / "audit.jsonl")},
        TOGETHER: {
            "auth": _AUTH,
            "authorization": authorization,
            "quotas": quotas,
            "audit": _audit(directory / "together.jsonl"),
            "metrics": _METRICS,
        },
    }


def _audit(path: Path) -> dict[str, Any]:
    return {"jsonl_path": path, "durability": "write"}
