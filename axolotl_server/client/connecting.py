"""Connections to servers: started from a container, started as a process, or found at a URL."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from dependency_injector import containers

from axolotl_core.protocol import codes
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.versions import STATELESS_REVISIONS
from axolotl_server.client.channel import IChannel, InvalidReply
from axolotl_server.client.client import Client, InProcessClient, find_revision
from axolotl_server.client.event_reading import ClientLimits
from axolotl_server.client.handshake_requests import HandshakeRequests
from axolotl_server.client.http_channel import HttpStatusError, open_http_channel
from axolotl_server.client.process_channel import open_process_channel
from axolotl_server.client.replies import Answering, RemoteError
from axolotl_server.client.requests import Requests
from axolotl_server.client.stateless_requests import StatelessRequests
from axolotl_server.host import ServerHost
from axolotl_server.settings.origins import combine, nest
from axolotl_server.settings.settings_file import read_settings_file, split_settings

_FINAL_STATUSES: Final = frozenset({401, 403, 429, *range(300, 400), *range(500, 600)})
"""HTTP statuses that another revision would get, too."""


@asynccontextmanager
async def connect(
    container: containers.Container,
    *,
    settings: Mapping[str, Any] | str | Path | None = None,
    profile: str | None = None,
    toolsets: Sequence[str] = (),
    principal: Principal = ANONYMOUS,
    answer: Answering | None = None,
    capabilities: Mapping[str, Any] | None = None,
    revision: str | None = None,
) -> AsyncIterator[InProcessClient]:
    """Start the server of a container and connect to it.

    `settings` is the path of a settings file or has the form of one, and `profile` selects one of its profiles. The
    sections `audit` and `telemetry` of a file have no effect unless the profile has them too: tests neither write to
    the audit log of production nor send anything. Environment variables have no effect. `answer`, `capabilities` and
    `revision` are those of `InProcessClient`.
    """
    is_file = isinstance(settings, str | Path)
    read = read_settings_file(Path(settings)) if isinstance(settings, str | Path) else split_settings(settings or {})
    chosen = read.select(profile).without("audit", "telemetry") if is_file else read.select(profile)
    flags, file = (None, chosen) if is_file else (nest(combine(chosen.sources)), None)
    names = toolsets or chosen.toolset_names
    async with ServerHost(container, flags=flags, file=file, toolsets=names, environment={}) as host:
        await host.begin()
        client = InProcessClient(host.handler, principal, answer=answer, capabilities=capabilities, revision=revision)
        try:
            yield client
        finally:
            await client.close()


@asynccontextmanager
async def connect_url(
    url: str,
    *,
    token: str | None = None,
    revision: str | None = None,
    answer: Answering | None = None,
    capabilities: Mapping[str, Any] | None = None,
    limits: ClientLimits | None = None,
) -> AsyncIterator[Client]:
    """Connect to a running server over Streamable HTTP.

    A URL without a path means `/mcp`. `token` is sent as a bearer token, to this server only. Without a `revision`, the
    latest one that both sides know is used. `answer` and `capabilities` are those of `InProcessClient`.

    Raises ValueError for an invalid URL or token, and ConnectionError if there is no server that speaks the protocol.
    """
    limits = limits or ClientLimits()
    channel = await open_http_channel(url, token, limits)
    async with connect_channel(channel, answer, capabilities, revision, limits) as client:
        yield client


@asynccontextmanager
async def connect_process(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: str | Path | None = None,
    revision: str | None = None,
    answer: Answering | None = None,
    capabilities: Mapping[str, Any] | None = None,
    limits: ClientLimits | None = None,
) -> AsyncIterator[Client]:
    """Start a server as a child process, connect to it over stdio, and end it afterwards.

    The server gets the variables in `environment`, and of those of this process only the usual ones, such as `PATH` and
    `HOME`, because others may be secrets. The other arguments are those of `connect_url`. Raises OSError if the process
    cannot be started, and ConnectionError if it does not speak the protocol.
    """
    limits = limits or ClientLimits()
    channel = await open_process_channel(command, environment, directory, limits.max_message_bytes)
    async with connect_channel(channel, answer, capabilities, revision, limits) as client:
        yield client


@asynccontextmanager
async def connect_channel(
    channel: IChannel,
    answer: Answering | None,
    capabilities: Mapping[str, Any] | None,
    revision: str | None,
    limits: ClientLimits,
) -> AsyncIterator[Client]:
    """Connect to the server at the other end of a channel, which is closed afterwards; agree on a revision first."""
    try:
        requests = await _negotiate(channel, answer, capabilities, revision, limits)
    except BaseException:
        await channel.close()
        raise
    try:
        yield Client(requests)
    finally:
        await requests.close()


async def _negotiate(
    channel: IChannel,
    answer: Answering | None,
    capabilities: Mapping[str, Any] | None,
    revision: str | None,
    limits: ClientLimits,
) -> Requests:
    wanted = None if revision is None else find_revision(revision)
    try:
        if wanted is None or wanted.stateless:
            return await _started(StatelessRequests(channel, answer, capabilities), limits)
    except RemoteError as error:
        if error.code == codes.UNSUPPORTED_VERSION:
            raise _unsupported(error) from None
        if wanted is not None:
            raise
    except HttpStatusError as error:
        if error.status in _FINAL_STATUSES or wanted is not None:
            raise
    except (InvalidReply, TimeoutError):
        if wanted is not None:
            raise
    channel.use(None)
    try:
        return await _started(HandshakeRequests(channel, answer, capabilities, wanted), limits)
    except TimeoutError:
        raise ConnectionError(f"The server gave no answer within {limits.connect_seconds:g} seconds") from None


async def _started(requests: Requests, limits: ClientLimits) -> Requests:
    """Ask the server who it is; raises RemoteError, and ConnectionError if it is not a server."""
    async with asyncio.timeout(limits.connect_seconds):
        await requests.describe()
    return requests


def _unsupported(error: RemoteError) -> ConnectionError:
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    names = ", ".join(map(str, supported)) if isinstance(supported, list) else "unknown"
    own = ", ".join(revision.name for revision in STATELESS_REVISIONS)
    return ConnectionError(f"The server speaks other revisions ({names}) than this client ({own})")
