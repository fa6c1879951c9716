"""`axolotl_issuer`: tokens that a server accepts, and refuses after a rotation, an expiry or an outage."""

import sys

import pytest

from tests.testing.conftest import RunTests


@pytest.mark.slow
def test_tokens(run_tests: RunTests) -> None:
    """A server reads subject, roles, scopes, tenant and claims from a token, by signature or introspection."""
    result = run_tests(
        """
        import json
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        async def call(server, token):
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
                async with Client(streamable_http_client(server.url, http_client=http)) as client:
                    listed = await client.list_tools()
            return {tool.name for tool in listed.tools}

        async def status(server, token):
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            async with httpx2.AsyncClient() as http:
                reply = await http.post(server.url, json=body, headers={"Authorization": f"Bearer {token}"})
            return reply.status_code

        async def test_signature(axolotl_server, axolotl_issuer):
            async with axolotl_server(settings=axolotl_issuer.settings) as server:
                clerk = axolotl_issuer.token("ann", roles=["clerk"], scopes=["read"], tenant="acme", department="tea")
                assert await call(server, clerk) == {"track_order"}
                assert await call(server, axolotl_issuer.token("mia", roles=["manager"])) == {"track_order", "restock"}
                assert await status(server, axolotl_issuer.token("old", expires_in=-60)) == 401
                assert await status(server, axolotl_issuer.token("x", aud="https://other.example.com")) == 401
                axolotl_issuer.rotate_keys()
                assert await call(server, axolotl_issuer.token("mia", roles=["clerk"])) == {"track_order"}
                with axolotl_issuer.stop():
                    assert await status(server, axolotl_issuer.token("ann")) != 401

        async def test_introspection(axolotl_server, axolotl_issuer):
            async with axolotl_server(settings=axolotl_issuer.introspection_settings) as server:
                token = axolotl_issuer.token("ann", roles=["clerk"])
                assert await call(server, token) == {"track_order"}
                with axolotl_issuer.stop():
                    assert await status(server, token) == 503
                axolotl_issuer.rotate_keys()
                assert await status(server, token) == 401
        """
    )
    result.assert_outcomes(passed=2)


def test_the_extra_is_named(run_tests: RunTests, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra `auth`, the message says what to install."""
    monkeypatch.delitem(sys.modules, "axolotl_testing.issuer", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    result = run_tests("def test_it(axolotl_issuer): ...")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["axolotl_issuer needs jwt: install the extra auth, pip install 'axolotl-mcp[[]auth]'"])
