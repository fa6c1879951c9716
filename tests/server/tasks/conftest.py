"""A server with tools that run as tasks, and clients of both designs."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from axolotl_server import ServerHost
from tests.support.peers.task_peers import DESIGNS, DirectedPeer, Herald, Job, RequestingPeer, TaskPeer
from tests.support.scenarios.asking_tasks import ASKING_TOOLS
from tests.support.scenarios.task_tools import TOOLS
from tests.support.tools import Echo, container_of


@pytest.fixture
def job() -> Job:
    """A tool that runs until it is released."""
    return Job()


@pytest_asyncio.fixture
async def host(job: Job) -> AsyncIterator[ServerHost]:
    """A server with tools for which tasks are optional, forbidden or required."""
    tools = (job, *TOOLS, *ASKING_TOOLS, Echo(), Job("must", "required"), Herald("herald"))
    async with ServerHost(container_of(*tools), flags={"tasks": {"ttl_seconds": 600}}) as host:
        yield host


@pytest_asyncio.fixture
async def requesting(host: ServerHost) -> RequestingPeer:
    """A client that requests tasks."""
    return await RequestingPeer.connect(host)


@pytest_asyncio.fixture
async def directed(host: ServerHost) -> DirectedPeer:
    """A client of tasks that the server creates."""
    return await DirectedPeer.connect(host)


@pytest_asyncio.fixture(params=DESIGNS.values(), ids=DESIGNS)
async def peer(request: pytest.FixtureRequest, host: ServerHost) -> TaskPeer:
    """A client of each design."""
    design: type[TaskPeer] = request.param
    return await design.connect(host)
