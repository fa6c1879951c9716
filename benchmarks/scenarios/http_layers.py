"""Calls over HTTP with authentication, authorization and other policies, compared with a plain call."""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import jwt

from benchmarks.contenders import AXOLOTL
from benchmarks.http_load import stateless_calls
from benchmarks.model import Comparison, Measure, Metric, Scale, Scenario, Series

NAME = "http layers"
_PLAIN = "plain"
_EXTRAS = ("--extra", "auth", "--extra", "metrics", "--extra", "otel")
_EXTENDED = replace(AXOLOTL, name="axolotl-extended", packages=(*AXOLOTL.packages, *_EXTRAS))
_CALLS = 3000
_RESOURCE = "http://127.0.0.1/mcp"
_ISSUER = "https://issuer.example"
_SECRET = secrets.token_urlsafe(32)
_DAY_SECONDS = 86_400.0

Settings = Mapping[str, Any]

_AUTH: Final[Settings] = {
    "AUTH__RESOURCE": _RESOURCE,
    "AUTH__ISSUERS": [_ISSUER],
    "AUTH__HMAC_SECRET": _SECRET,
    "AUTH__TENANT_CLAIM": "tenant",
}
_OTHERS = [{"name": f"rule {number}", "effect": "allow", "who": {"roles": [f"role {number}"]}} for number in range(9)]
_ANYBODY = {"name": "anybody", "effect": "allow", "who": {"anonymous": True}}
_CLERKS = {"name": "clerks", "effect": "allow", "who": {"roles": ["clerk"], "tenants": ["acme"]}}
_QUOTAS: Final[Settings] = {
    "QUOTAS__RULES": {
        "user": {"per": ["principal"], "rate_per_second": 1e6, "burst": 1e6},
        "day": {"per": ["tenant", "tool"], "limit": 1e9, "window": "day"},
    }
}


def _token() -> str:
    claims = {"iss": _ISSUER, "aud": _RESOURCE, "sub": "ada", "tenant": "acme", "roles": ["clerk"]}
    now = time.time()
    return jwt.encode({**claims, "iat": now, "exp": now + _DAY_SECONDS}, _SECRET, algorithm="HS256")


def _served(settings: Callable[[Path], Settings]) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with TemporaryDirectory(prefix="axolotl-bench-") as directory:
            values = settings(Path(directory))
            headers = {"Authorization": f"Bearer {_token()}"} if "AUTH__RESOURCE" in values else {}
            environment = {f"AXOLOTL_{name}": _text(value) for name, value in values.items()}
            with stateless_calls(_EXTENDED, _CALLS, environment=environment, headers=headers)(scale) as measure:
                yield measure

    return opened


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _authorized(directory: Path) -> Settings:
    return {"AUTHORIZATION__RULES": [*_OTHERS, _ANYBODY]}


def _authenticated(directory: Path) -> Settings:
    return _AUTH


def _together(directory: Path) -> Settings:
    audit = {"AUDIT__JSONL_PATH": str(directory / "audit.jsonl"), "AUDIT__DURABILITY": "write"}
    rules = {"AUTHORIZATION__RULES": [*_OTHERS, _CLERKS], "METRICS__ENABLED": "true"}
    return {**_AUTH, **_QUOTAS, **audit, **rules}


SCENARIO = Scenario(
    name=NAME,
    group="layers",
    summary="a call over HTTP with authorization, with a JWT, and with five policies, compared with a plain call",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "authorization, 10 rules": Comparison(_PLAIN),
                "JWT": Comparison(_PLAIN),
                "JWT, authorization, quota, audit, metrics": Comparison(_PLAIN, at_most=3.5),
            },
        ),
    ),
    series=(
        Series(_PLAIN, _served(lambda directory: {})),
        Series("authorization, 10 rules", _served(_authorized)),
        Series("JWT", _served(_authenticated)),
        Series("JWT, authorization, quota, audit, metrics", _served(_together)),
    ),
)
