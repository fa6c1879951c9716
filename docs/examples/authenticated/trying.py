import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from ledger import Container

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_server import HttpApp, ServerHost, make_app

ISSUER, RESOURCE = "https://login.example.com", "https://mcp.example.com/mcp"
KEY = ec.generate_private_key(ec.SECP256R1())


def sign(**changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "org_id": "acme", "exp": time.time() + 60}
    return jwt.encode({**claims, "scope": "ledger:read", **changes}, KEY, "ES256", {"kid": "key-1"})


def reaching(app: HttpApp) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app))


async def call(client: httpx2.AsyncClient, tool: str, token: str | None) -> None:
    version = LATEST_STATELESS_REVISION.name
    meta = {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: {}}
    params = {"name": tool, "arguments": {"amount": 5} if tool == "book" else {}, "_meta": meta}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    reply = await client.post("http://localhost/mcp", json=message, headers=headers)
    challenge = reply.headers.get("WWW-Authenticate")
    said = reply.json()["result"]["content"][0]["text"] if challenge is None else challenge
    print(f"{reply.status_code} {said}\n")


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "keys.json"
        public = {**ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "key-1"}
        file.write_text(json.dumps({"keys": [public]}))
        auth = {"resource": RESOURCE, "issuers": [ISSUER], "jwks": str(file), "tenant_claim": "org_id"}
        settings = {"auth": auth, "authorization": {"denied_as": "forbidden"}}
        async with ServerHost(Container(), flags=settings) as host, reaching(make_app(host)) as client:
            await call(client, "balance", None)
            await call(client, "balance", sign(exp=time.time() - 60))
            await call(client, "balance", sign(aud="https://other.example.com/mcp"))
            await call(client, "balance", sign())
            await call(client, "book", sign())
            await call(client, "book", sign(scope="ledger:read ledger:write"))


if __name__ == "__main__":
    asyncio.run(main())
