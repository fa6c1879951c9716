"""A token issuer on 127.0.0.1, with real keys and signatures."""

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

_ALGORITHM: Final = "ES256"
_RESOURCE: Final = "https://mcp.example.com/mcp"
_REFRESH_SECONDS: Final = 0.01
"""How soon a server fetches keys again, so that it knows a new key at once."""
_MAX_BODY_BYTES: Final = 64 * 1024


class Issuer:
    """Signs tokens and publishes its keys; the type of the fixture `axolotl_issuer`."""

    def __init__(self) -> None:
        self._keys: list[tuple[str, ec.EllipticCurvePrivateKey]] = []
        self._port = 0
        self.rotate_keys()
        self._start()

    @property
    def url(self) -> str:
        """The issuer, as in the claim `iss`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of a server that accepts its tokens and verifies their signatures."""
        return {"auth": {**self._common, "issuers": [self.url], "jwks_refresh_seconds": _REFRESH_SECONDS}}

    @property
    def introspection_settings(self) -> dict[str, Any]:
        """Settings of a server that asks the issuer about each token."""
        place = {"introspection_url": f"{self.url}/introspect", "authorization_servers": [self.url]}
        return {"auth": {**self._common, **place, "token_cache_seconds": 0}}

    def token(
        self,
        subject: str,
        *,
        scopes: Iterable[str] = (),
        roles: Iterable[str] = (),
        tenant: str | None = None,
        expires_in: float = 300,
        **claims: Any,
    ) -> str:
        """Sign a token; `claims` replace or add claims, and None leaves one out."""
        now = int(time.time())
        usual = {
            "iss": self.url,
            "aud": _RESOURCE,
            "sub": subject,
            "iat": now,
            "exp": now + int(expires_in),
            "scope": " ".join(scopes) or None,
            "roles": [*roles] or None,
            "tenant": tenant,
        }
        name, key = self._keys[-1]
        content = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(content, key, _ALGORITHM, headers={"kid": name})

    def rotate_keys(self) -> None:
        """Sign with a new key from now on, and accept no older ones."""
        self._keys = [(f"key-{time.monotonic_ns()}", ec.generate_private_key(ec.SECP256R1()))]

    @contextmanager
    def stop(self) -> Iterator[None]:
        """Answer no requests while the block runs."""
        self.close()
        try:
            yield
        finally:
            self._start()

    def close(self) -> None:
        """Stop for good."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, path: str, form: Mapping[str, list[str]]) -> Any:
        """Return the JSON response to a request; None if the path is unknown."""
        if path.startswith(("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")):
            return {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "introspection_endpoint": f"{self.url}/introspect",
            }
        if path == "/jwks":
            public = ((name, ECAlgorithm.to_jwk(key.public_key(), as_dict=True)) for name, key in self._keys)
            return {"keys": [{**key, "kid": name, "use": "sig", "alg": _ALGORITHM} for name, key in public]}
        return self._introspected(form.get("token", [""])[0]) if path == "/introspect" else None

    @property
    def _common(self) -> dict[str, Any]:
        return {"resource": _RESOURCE, "tenant_claim": "tenant"}

    def _introspected(self, token: str) -> dict[str, Any]:
        for _, key in self._keys:
            try:
                claims = jwt.decode(token, key.public_key(), [_ALGORITHM], audience=_RESOURCE)
            except jwt.InvalidTokenError:
                continue
            return {**claims, "active": True}
        return {"active": False}

    def _start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler_of(self))
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="axolotl-issuer")
        self._thread.start()


def _handler_of(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(issuer._answer(self.path, {}))

        def do_POST(self) -> None:
            length = min(int(self.headers.get("Content-Length", "0")), _MAX_BODY_BYTES)
            self._reply(issuer._answer(self.path, parse_qs(self.rfile.read(length).decode())))

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

        def _reply(self, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
