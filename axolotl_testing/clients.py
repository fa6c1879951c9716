"""Clients of the server under test."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import pytest

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.client.client import Client
from axolotl_server.client.replies import Answering
from axolotl_server.host import ServerHost
from axolotl_testing.findings import indented
from axolotl_testing.project import DEFAULT_PROFILE, ContainerSource, Project, SettingsSource
from axolotl_testing.transports import ClientOptions, TransportName, adapted, connected

if TYPE_CHECKING:
    from axolotl_testing.faults import FaultPlan

_LEFTOVER_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.01


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
                adapt=lambda settings: adapted(settings, transport, principal),
                environment={},
            )
            async with host:
                async with connected(transport, host, options) as client:
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
