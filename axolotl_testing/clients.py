"""Clients of the server under test, over memory, HTTP on a free port, or stdio over pipes."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import pytest

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
from axolotl_testing.assertions import indented
from axolotl_testing.project import DEFAULT_PROFILE, ContainerSource, Project, SettingsSource

if TYPE_CHECKING:
    from axolotl_testing.faults import FaultPlan

_LEFTOVER_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.01

TransportName: TypeAlias = Literal["memory", "stdio", "http"]
"""How the client reaches the server."""

_NO_DRAIN: Final = {"drain_seconds": 0.0}


class ClientOptions(NamedTuple):
    """The caller and the abilities of a client."""

    principal: Principal
    answer: Answering | None
    capabilities: Mapping[str, Any] | None
    revision: str | None


class ClientFactory:
    """Makes clients; the type of the fixture `axolotl_client`."""

    def __init__(self, project: Project, faults: "FaultPlan | None" = None) -> None:
        self._project = project
        self._faults = faults

    @asynccontextmanager
    async def __call__(
        self,
        container: ContainerSource | None = None,
        *,
        overrides: Mapping[str, Any] | None = None,
        settings: SettingsSource | None = None,
        profile: str | None = DEFAULT_PROFILE,
        toolsets: Sequence[str] = (),
        principal: Principal = ANONYMOUS,
        revision: str | None = None,
        transport: TransportName = "memory",
        answer: Answering | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Client]:
        """Start a server with a fresh container, connect to it, and stop it after the block.

        Without a container, it is the target of the nearest `axolotl.toml` above the test, with the settings of that
        file and of its profile `test`, if there is one. `overrides` maps dotted names of providers to objects or
        providers. `settings` overrides settings, or is the path of another settings file. Environment variables have
        no effect. Without `revision`, it is the latest one. The server runs in this process with every transport. The
        test fails if calls or objects of calls are left over after the block.
        """
        opened = self._project.open(container, overrides=overrides or {}, settings=settings, profile=profile)
        with opened as (made, file, flags), nullcontext() if self._faults is None else self._faults.applied(made):
            options = ClientOptions(principal, answer, capabilities, revision)
            host = ServerHost(
                made,
                flags=flags,
                file=file,
                toolsets=toolsets or file.toolset_names,
                adapt=lambda settings: _adapted(settings, transport, principal),
                environment={},
            )
            async with host:
                async with _TRANSPORTS[transport](host, options) as client:
                    yield client
                await _check_leftovers(host)


async def _check_leftovers(host: ServerHost) -> None:
    """Give calls a moment to end, and fail the test if the code or the objects of one are left over."""
    __tracebackhide__ = True
    inflight, loop = host.assembly.inflight, asyncio.get_running_loop()
    end = loop.time() + _LEFTOVER_SECONDS
    while (inflight or inflight.zombies or inflight.scope_closer) and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_STEP_SECONDS)
    running = [*(call.spec.name for call in inflight), *inflight.zombies.by_name()]
    found = [f"the code of {name}, which still runs" for name in dict.fromkeys(running)]
    if inflight.scope_closer:
        found.append(f"{len(inflight.scope_closer)} calls whose objects are not closed")
    if found:
        pytest.fail(f"The block left over:{indented(found)}", pytrace=False)


def _adapted(settings: ServerSettings, transport: TransportName, principal: Principal) -> ServerSettings:
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
