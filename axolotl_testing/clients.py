"""Clients of the server under test."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.client.client import Client
from axolotl_server.client.outcomes import Answering
from axolotl_server.host import ServerHost
from axolotl_testing.leftovers import Leftovers
from axolotl_testing.project import DEFAULT_PROFILE, ContainerSource, Project, SettingsSource
from axolotl_testing.transports import ClientOptions, TransportName, adapted, connected

if TYPE_CHECKING:
    from axolotl_testing.faults import FaultPlan


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
        test fails if threads, processes, calls or objects of calls are left over after the block.
        """
        opened = self._project.open(container, overrides=overrides or {}, settings=settings, profile=profile)
        with opened as (made, file, flags), nullcontext() if self._faults is None else self._faults.applied(made):
            options = ClientOptions(principal, answer, capabilities, revision)
            leftovers = Leftovers()
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
                    if self._faults is not None:
                        self._faults.watch(client)
                    yield client
                await leftovers.watch(host)
            await leftovers.check()
