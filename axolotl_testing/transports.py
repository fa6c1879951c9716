"""Transports to a server in this process: memory, HTTP on a free port, and stdio over pipes."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.client.client import Client, InProcessClient
from axolotl_server.client.connecting import connect_channel, connect_url
from axolotl_server.client.event_reading import ClientLimits
from axolotl_server.client.process_channel import LineChannel
from axolotl_server.client.replies import Answering
from axolotl_server.host import ServerHost
from axolotl_server.http.asgi import PrincipalGate
from axolotl_server.settings.policies import PrincipalSettings
from axolotl_server.settings.server import ServerSettings
from axolotl_server.transports.pipes import StandardStreams

TransportName: TypeAlias = Literal["memory", "stdio", "http"]
"""How the client reaches the server."""

_NO_DRAIN: Final = {"drain_seconds": 0.0}


class ClientOptions(NamedTuple):
    """The caller and the abilities of a client."""

    principal: Principal
    answer: Answering | None
    capabilities: Mapping[str, Any] | None
    revision: str | None


def adapted(settings: ServerSettings, transport: TransportName, principal: Principal) -> ServerSettings:
    """Change the settings of a server for a transport: the caller over stdio, and no wait for calls at the end."""
    if transport == "memory":
        return settings
    if transport == "http":
        return settings.model_copy(update={"http": settings.http.model_copy(update=_NO_DRAIN)})
    if principal.claims:
        raise ValueError("A principal has no claims over stdio: use the transport memory or http")
    caller = None
    if principal != ANONYMOUS:
        caller = PrincipalSettings(
            subject=principal.subject, tenant=principal.tenant, scopes=principal.scopes, roles=principal.roles
        )
    stdio = settings.stdio.model_copy(update={"principal": caller})
    return settings.model_copy(update={"stdio": stdio})


def connected(
    transport: TransportName, host: ServerHost, options: ClientOptions
) -> AbstractAsyncContextManager[Client]:
    """Connect to a server that has started."""
    return _TRANSPORTS[transport](host, options)


@asynccontextmanager
async def _over_memory(host: ServerHost, options: ClientOptions) -> AsyncIterator[Client]:
    principal, answer, capabilities, revision = options
    client = InProcessClient(host.handler, principal, answer=answer, capabilities=capabilities, revision=revision)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def _over_http(host: ServerHost, options: ClientOptions) -> AsyncIterator[Client]:
    from axolotl_server.http.server.serve import serve_http

    principal, answer, capabilities, revision = options
    if principal != ANONYMOUS:
        host.authenticator = PrincipalGate(principal)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{host.settings.http.path}"
    is_serving = asyncio.Event()
    serving = asyncio.ensure_future(serve_http(host, listener, on_serving=is_serving.set))
    try:
        started = asyncio.ensure_future(is_serving.wait())
        await asyncio.wait((started, serving), return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        async with connect_url(url, answer=answer, capabilities=capabilities, revision=revision) as client:
            yield client
    finally:
        host.stop_signal.set()
        await serving


@asynccontextmanager
async def _over_stdio(host: ServerHost, options: ClientOptions) -> AsyncIterator[Client]:
    from axolotl_server.transports.stdio import serve_stdio

    limits, loop = ClientLimits(), asyncio.get_running_loop()
    their_input, our_output = os.pipe()
    our_input, their_output = os.pipe()
    streams = StandardStreams(their_input, their_output)
    serving = asyncio.ensure_future(serve_stdio(host.handler, host.settings, streams, host.stop_signal, 0.0))
    reader = asyncio.StreamReader(limits.max_message_bytes, loop)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_input, "rb", 0))
    closing = asyncio.StreamReaderProtocol(asyncio.StreamReader())  # knows when the pipe is closed
    transport, protocol = await loop.connect_write_pipe(lambda: closing, os.fdopen(our_output, "wb", 0))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    channel = LineChannel(reader, writer, limits.max_message_bytes)
    try:
        connection = connect_channel(channel, options.answer, options.capabilities, options.revision, limits)
        async with connection as client:
            yield client
    finally:
        host.stop_signal.set()
        await serving


_TRANSPORTS: Final[dict[str, Callable[[ServerHost, ClientOptions], AbstractAsyncContextManager[Client]]]] = {
    "memory": _over_memory,
    "stdio": _over_stdio,
    "http": _over_http,
}
