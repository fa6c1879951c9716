"""Resources and resource templates: listing and reading."""

import base64
import json

import pytest
from mcp import MCPError
from mcp_types import BlobResourceContents, TextResourceContents

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import by_every_way
from tests.support.clients.full_container import LOGO
from tests.support.clients.simulated_user import words

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def text_at(peer: IPeer, uri: str) -> str:
    (content,) = (await peer.read(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert content.uri == uri
    return content.text


@by_every_way
async def test_resources_are_listed(peer: IPeer) -> None:
    """The list shows the type, size and audience of each resource."""
    listed = {resource.uri: resource for resource in await peer.resources()}
    config, logo = listed["config://app"], listed["logo://axolotl"]
    assert (config.name, config.title, config.size) == ("config", "Configuration", None)
    assert config.annotations is not None
    assert (config.annotations.audience, config.annotations.priority) == (["user"], 0.5)
    assert (logo.mime_type, logo.size, logo.description) == ("image/png", len(LOGO), "The logo.")


@by_every_way
async def test_templates_are_listed(peer: IPeer) -> None:
    """The list shows the URI templates."""
    listed = {template.name: template for template in await peer.templates()}
    assert listed["profile"].uri_template == "users://{user_id}/profile{?full}"
    assert (listed["note"].uri_template, listed["note"].mime_type) == ("notes://{name}", "text/plain")


@by_every_way
async def test_texts_are_read(peer: IPeer) -> None:
    """JSON and plain text arrive as text, from fixed URIs and from templates."""
    assert json.loads(await text_at(peer, "config://app")) == {"debug": True}
    assert json.loads(await text_at(peer, "users://7/profile")) == {"id": 7, "full": False}
    assert json.loads(await text_at(peer, "users://7/profile?full=true")) == {"id": 7, "full": True}
    assert await text_at(peer, "notes://shopping") == "milk"


@by_every_way
async def test_a_uri_is_decoded(peer: IPeer) -> None:
    """Template variables are decoded from the URI."""
    await peer.call("write_note", {"name": "käse & brot", "text": "tasty"})
    assert await text_at(peer, "notes://k%C3%A4se%20%26%20brot") == "tasty"


@by_every_way
async def test_bytes_are_read(peer: IPeer) -> None:
    """Binary content arrives unchanged."""
    (content,) = (await peer.read("logo://axolotl")).contents
    assert isinstance(content, BlobResourceContents)
    assert content.mime_type == "image/png"
    assert base64.b64decode(content.blob) == LOGO


@by_every_way
async def test_an_unknown_uri(peer: IPeer) -> None:
    """Reading an unknown URI is an error that names it, whether or not a template matches."""
    for uri in ("notes://nowhere", "unknown://thing", "users://ada/profile"):
        with pytest.raises(MCPError, match=f"Resource not found: {uri}") as caught:
            await peer.read(uri)
        assert caught.value.error.code == (-32602 if peer.way.stateless else -32002)
        assert caught.value.error.data == {"uri": uri}


@by_every_way
async def test_a_resource_asks(peer: IPeer) -> None:
    """A resource can ask the user a question while the client waits."""
    peer.person.fill_in = words("swordfish")
    assert await text_at(peer, "letter://sealed") == "Opened with swordfish"


@by_every_way
async def test_a_client_caches_a_resource(peer: IPeer) -> None:
    """A client with a cache reads a resource once within its lifetime; other clients read it again."""
    first, second = [await text_at(peer, "count://reads") for _ in range(2)]
    caches = peer.way.library == "official" and peer.way.stateless
    assert int(second) == int(first) + (0 if caches else 1)
