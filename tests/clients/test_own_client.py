"""Our client against servers of the official SDK and of FastMCP, in every revision of Streamable HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

from axolotl_core.protocol.versions import REVISIONS
from axolotl_server import RemoteError, connect_url
from tests.support.clients.foreign_servers import foreign_server

pytestmark = pytest.mark.slow

NAMES = [revision.name for revision in REVISIONS][1:]


@pytest.fixture(scope="module", params=["official", "fastmcp"])
def foreign(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server of another framework."""
    with foreign_server(request.param) as url:
        yield url


@pytest.mark.parametrize("revision", [None, *NAMES])
async def test_a_foreign_server(foreign: str, revision: str | None) -> None:
    """Everything that the server offers is listed and used."""
    progress: list[Any] = []
    async with connect_url(foreign, revision=revision) as client:
        assert client.revision == (revision or NAMES[-1])
        described = await client.describe()
        assert (described.name, described.instructions) == ("foreign", "Be brief")
        assert [tool["name"] for tool in await client.list_tools()] == ["climb", "insist", "add", "crash"]
        assert (await client.call("add", {"a": 1, "b": 2})).text == "3"
        assert (await client.call("climb", {"steps": 3}, on_progress=progress.append)).text == "there"
        assert [one["progress"] for one in progress] == [1, 2, 3]
        assert (await client.call("crash")).is_error
        assert [one["name"] for one in await client.list_prompts()] == ["greeting"]
        assert (await client.get_prompt("greeting", {"name": "Ann"})).text == "Hello, Ann"
        assert (await client.read_resource("config://app")).text == "debug"
        assert (await client.read_resource("notes://mine")).text == "note mine"
        with pytest.raises(RemoteError):
            await client.read_resource("config://other")


@pytest.mark.parametrize("revision", NAMES[:-1])
async def test_questions_of_a_foreign_server(foreign: str, revision: str) -> None:
    """The server asks for a form by a request of its own."""
    async with connect_url(foreign, revision=revision, answer=lambda question: {"word": question.key}) as client:
        assert (await client.call("insist")).text == "ask-1"
