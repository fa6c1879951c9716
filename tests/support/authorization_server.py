"""An authorization server on the loopback interface, with real keys and signatures and configurable pages."""

import asyncio
import contextlib
import json
import time
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.warnings import InsecureKeyLengthWarning

RESOURCE = "https://mcp.example.com/mcp"
_CURVES: dict[str, Any] = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


class SigningKey:
    """A named key pair."""

    def __init__(self, name: str, algorithm: str = "ES256", bits: int = 2048) -> None:
        self.name = name
        self.algorithm = algorithm
        self.private: Any
        form: Any
        if algorithm == "EdDSA":
            self.private, form = ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm
        elif algorithm in _CURVES:
            self.private, form = ec.generate_private_key(_CURVES[algorithm]()), ECAlgorithm
        else:
            self.private, form = rsa.generate_private_key(65537, bits), RSAAlgorithm
        public = form.to_jwk(self.private.public_key(), as_dict=True)
        self.jwk: dict[str, Any] = {**public, "kid": name, "use": "sig"}

    @property
    def public_pem(self) -> bytes:
        """The public key."""
        pem: bytes = self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem

    def sign(self, claims: Any, **headers: Any) -> str:
        """Sign a token with arbitrary claims, and with additional or changed headers."""
        content = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureKeyLengthWarning)
            return PyJWS().encode(content, self.private, self.algorithm, {"kid": self.name, **headers})


@dataclass
class Page:
    """The response at a path."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        """The fields of its form."""
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


class Authority:
    """Publishes keys, signs tokens and answers introspection requests."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.key = SigningKey("first")
        self.pages: dict[str, Page | Callable[[Asked], Page]] = {}
        self.asked: list[Asked] = []
        self.open = asyncio.Event()
        """Requests wait while this is not set."""
        self.open.set()
        self.publish(self.key)

    def publish(self, *keys: SigningKey | dict[str, Any]) -> None:
        """Publish only these keys."""
        self.say("/jwks", {"keys": [key if isinstance(key, dict) else key.jwk for key in keys]})

    def say(self, path: str, content: Any, **page: Any) -> None:
        """Set the JSON response at a path."""
        self.pages[path] = Page(json.dumps(content).encode(), **page)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a valid token, with changes; None removes a claim."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": RESOURCE, "sub": "ada", "iat": now, "exp": now + 300, "scope": "read"}
        return {name: value for name, value in {**usual, **changes}.items() if value is not None}

    def token(self, **changes: Any) -> str:
        """Sign the claims of a valid token, with changes."""
        return self.key.sign(self.claims(**changes))

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Return the settings of a server that trusts this authority."""
        return {"resource": RESOURCE, "issuers": [self.url], "jwks": f"{self.url}/jwks", **changes}

    def count(self, path: str) -> int:
        """Count the requests for a path."""
        return sum(one.path == path for one in self.asked)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                asked = await _read(reader)
                self.asked.append(asked)
                await self.open.wait()
                answer = self.pages.get(asked.path, Page(b"{}", 404))
                page = answer if isinstance(answer, Page) else answer(asked)
                headers = {"content-type": "application/json", "content-length": str(len(page.body)), **page.headers}
                lines = [f"HTTP/1.1 {page.status} x", *(f"{name}: {value}" for name, value in headers.items())]
                writer.write("\r\n".join([*lines, "", ""]).encode() + page.body)
                await writer.drain()
        writer.close()


async def _read(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)


@asynccontextmanager
async def authority() -> AsyncIterator[Authority]:
    """Run an authorization server on the running loop."""
    made: list[Authority] = []
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        task.add_done_callback(connections.discard)
        try:
            await made[0].serve(reader, writer)
        except asyncio.CancelledError:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.append(Authority(server.sockets[0].getsockname()[1]))
    try:
        yield made[0]
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        if connections:
            await asyncio.wait(connections)
