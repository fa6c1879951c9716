"""Tokens never leave authentication: they are not in tools, logs, records or replies."""

import gc
import json
import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_core import Context, Principal, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from tests.support.authorization_server import authority
from tests.support.peers.token_client import Holder
from tests.support.peers.wire import call
from tests.support.servers.authenticated_server import asked, bearer, called, discover, gated
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

SECRET = "s3cret-canary-of-the-introspection"
_DEPTH = 12


def reachable(start: object) -> list[bytes | str]:
    """Collect all text that is reachable from an object, except through modules, classes and frames."""
    seen: set[int] = set()
    texts: list[bytes | str] = []
    level = [start]
    for _ in range(_DEPTH):
        following: list[object] = []
        for one in level:
            if isinstance(one, bytes | str):
                texts.append(one)
            elif id(one) not in seen and not isinstance(one, type | type(gc)):
                seen.add(id(one))
                following += gc.get_referents(one)
        level = following
    return texts


class Prying(ILayer):
    """A layer that inspects everything it can reach."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:

        async def pry(call: Call) -> Any:
            exchange: Any = call.caller.exchange  # type: ignore[attr-defined]
            self.seen += [dict(exchange.headers), call.principal]
            self.seen += reachable(call.principal) + reachable(exchange.headers)
            return await call_next(call)

        return pry


@tool
async def peek(context: Context) -> str:
    """Return everything in the principal."""
    principal: Principal = context.principal
    return repr((principal, sorted(reachable(principal), key=repr)))


async def test_no_token_reaches_a_tool() -> None:
    """Headers, principal and server state of a request do not contain the token."""
    prying = Prying()
    async with authority() as issuer:
        token = issuer.token()
        async with gated(issuer.settings(), container_of(peek, layers=[prying])) as server:
            for connection in ("keep-alive", "keep-alive", "close"):
                shown = (await called(server, "peek", bearer(token), ("Connection", connection))).body
                assert b"ada" in shown
                assert token.encode() not in shown
    text = repr(prying.seen)
    assert "mcp-method" in text
    for part in (token, token.split(".")[2], "authorization"):
        assert part not in text


async def test_no_token_anywhere(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Valid and invalid tokens, failing issuers and failing tools leave no token in logs or records."""
    caplog.set_level(logging.DEBUG)
    log = tmp_path / "audit.jsonl"
    sections: Any = {"audit": {"jsonl_path": str(log)}, "authorization": {"denied_as": "forbidden"}}
    async with authority() as issuer, gated(issuer.settings(token_cache_seconds=0), **sections) as server:
        issuer.say("/jwks", {}, status=500)
        tokens = [issuer.token(), issuer.token(exp=1), issuer.key.sign(issuer.claims(), kid="other"), "opaque.x.y"]
        answers = [await _body(discover(server, bearer(token))) for token in tokens]
        issuer.publish(issuer.key)
        while (await discover(server, bearer(tokens[0]))).status == 503:
            pass
        answers += [await answer async for answer in _use(server, tokens)]
    said = b"".join(answers).decode() + caplog.text + log.read_text(encoding="utf-8")
    assert "ada" in said
    for token in tokens:
        assert token not in said
        assert token.rpartition(".")[2] not in said or token == "opaque.x.y"


async def _use(server: Any, tokens: list[str]) -> Any:
    for token in tokens:
        for name in ("whoami", "pay", "nothing"):
            yield _body(called(server, name, bearer(token)))
        yield _body(discover(server, bearer(token), method="GET"))
        yield _body(asked(server, "resources/read", {"uri": "vault://gold"}, "vault://gold", [bearer(token)]))
        yield _body(discover(server, bearer(token), bearer(token)))
    async with httpx2.AsyncClient() as http:
        holder = Holder(http, server)
        await holder.begin(tokens[0])
        await holder.send(tokens[0], call("whoami", handshake=True))


async def _body(reply: Any) -> bytes:
    got = await reply
    return bytes(got.body) + json.dumps(dict(got.headers)).encode()


async def test_no_secret_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """Only the issuer receives the client secret of this server."""
    caplog.set_level(logging.DEBUG)
    async with authority() as issuer:
        auth = {
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": [issuer.url],
            "introspection_url": f"{issuer.url}/introspect",
            "introspection_client_id": "axolotl",
            "introspection_client_secret": SECRET,
        }
        async with gated(auth) as server:
            replies = [await discover(server, bearer("opaque-canary-token"))]
            issuer.say("/introspect", {"active": True, "sub": "ada", "aud": "https://mcp.example.com/mcp"})
            replies.append(await called(server, "whoami", bearer("opaque-canary-token")))
    assert [reply.status for reply in replies] == [503, 200]
    said = repr(replies) + caplog.text
    assert SECRET not in said
    assert "opaque-canary-token" not in said
    assert issuer.asked[0].headers["authorization"] not in said
