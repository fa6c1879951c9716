"""Tasks that the server decides on, over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import Field

from axolotl_core import Context, tool
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.task_peers import EXTENSION, REQUIRED, Job, records_of
from tests.support.peers.wire import mirrored
from tests.support.scenarios.task_tools import content_of, greet
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import container_of


@tool(task_support="optional")
async def routed(tenant: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Tenant"})]) -> str:
    """Take an argument that is repeated in a header."""
    return f"for {tenant}"


@tool(task_support="optional")
async def traced(context: Context) -> str:
    """Say which trace the call belongs to."""
    return "none" if context.trace is None else context.trace.traceparent


@pytest_asyncio.fixture
async def server(job: Job) -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    async with serving(container_of(job, greet, routed, traced, Job("must", "required"))) as running:
        yield running


@pytest_asyncio.fixture
async def poster(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client."""
    return Client(http, server.url, extensions={EXTENSION: {}})


async def ended(poster: Client, task_id: str) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            state = (await poster.request("tasks/get", {"taskId": task_id})).json()["result"]
            if state["status"] != "working":
                return state


async def begin(poster: Client, name: str, **params: Any) -> str:
    reply = await poster.request("tools/call", {"name": name, "arguments": {}, **params})
    assert reply.status_code == 200
    result = reply.json()["result"]
    assert result["resultType"] == "task"
    return str(result["taskId"])


async def test_a_task_over_http(poster: Client, job: Job) -> None:
    """A task is created and queried until its result, each with a plain request."""
    task_id = await begin(poster, "job")
    await job.started.wait()
    reply = await poster.request("tasks/get", {"taskId": task_id})
    assert (reply.headers["content-type"], reply.json()["result"]["status"]) == ("application/json", "working")
    job.release.set()
    assert content_of((await ended(poster, task_id))["result"]) == "done"


async def test_a_closed_connection_ends_no_task(server: HttpServer, http: httpx2.AsyncClient, job: Job) -> None:
    """A task survives the connection that created it."""
    async with httpx2.AsyncClient(verify=False) as leaving:
        task_id = await begin(Client(leaving, server.url, extensions={EXTENSION: {}}), "job")
        await job.started.wait()
    await until(lambda: min(server.host.handler.inflight.values()) >= 2)  # calls are watched for disconnections then
    assert not job.cancelled.is_set()
    job.release.set()
    assert content_of((await ended(Client(http, server.url, extensions={EXTENSION: {}}), task_id))["result"]) == "done"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_the_name_is_repeated_in_a_header(poster: Client, method: str) -> None:
    """A header that names a different task, or none, is rejected."""
    task_id = await begin(poster, "job")
    params = {"taskId": task_id, "inputResponses": {}}
    for name in ("nothing", task_id.swapcase(), ""):
        reply = await poster.request(method, params, **{"Mcp-Name": name})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32020)
    assert (await poster.request(method, params)).status_code == 200


async def test_arguments_in_headers_are_compared(server: HttpServer, poster: Client) -> None:
    """The headers of a call that becomes a task are checked like any other."""
    params = {"name": "routed", "arguments": {"tenant": "acme"}}
    for headers in ({}, {"Mcp-Param-Tenant": "evil"}):
        reply = await poster.request("tools/call", params, **headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32020)
    assert not records_of(server.host)
    reply = await poster.request("tools/call", params, **{"Mcp-Param-Tenant": "acme"})
    state = await ended(poster, reply.json()["result"]["taskId"])
    assert content_of(state["result"]) == "for acme"


async def test_the_trace_of_the_headers_is_known(poster: Client) -> None:
    """The trace context in the headers reaches a task."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    reply = await poster.request("tools/call", {"name": "traced"}, traceparent=trace)
    assert content_of((await ended(poster, reply.json()["result"]["taskId"]))["result"]) == trace


async def test_statuses(http: httpx2.AsyncClient, server: HttpServer, poster: Client) -> None:
    """A missing extension is a bad request; an unknown task is a normal error."""
    plain = Client(http, server.url, roots={})
    for method, params in (("tools/call", {"name": "must"}), ("tasks/get", {"taskId": "must"})):
        reply = await plain.request(method, params)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32021)
        assert reply.json()["error"]["data"] == REQUIRED
    reply = await poster.request("tasks/get", {"taskId": "nothing"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (200, -32602)
    assert (await poster.request("tasks/result", {"taskId": "nothing"})).status_code == 404


async def test_listening_over_http(http: httpx2.AsyncClient, server: HttpServer, poster: Client, job: Job) -> None:
    """A subscription stream reports the end of a task."""
    task_id = await begin(poster, "job")
    body = poster.stateless("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
    headers = mirrored("subscriptions/listen")
    async with http.stream("POST", server.url, content=body, headers=headers) as response:
        stream = EventReader(response)
        assert (await stream.take()).message["params"]["notifications"] == {"taskIds": [task_id]}
        job.release.set()
        told = (await stream.take()).message
    assert (told["method"], told["params"]["status"]) == ("notifications/tasks", "completed")
