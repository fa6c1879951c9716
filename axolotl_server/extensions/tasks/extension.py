"""Tasks as an extension: requested by clients of one revision, directed by the server in the stateless one."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.health import IHealthCheck
from axolotl_core.protocol.versions import Revision
from axolotl_core.task_engine import TASKS_EXTENSION, ITaskEngine
from axolotl_server.calls.binding import Binder
from axolotl_server.extension import Extension, FeatureSet, Panel, Topic
from axolotl_server.extensions.tasks.directed_tasks import TOPIC, DirectedTasks
from axolotl_server.extensions.tasks.engines.assembly import make_engine
from axolotl_server.extensions.tasks.requested_tasks import RequestedTasks
from axolotl_server.extensions.tasks.task_layers import TaskLayers, run_layers
from axolotl_server.extensions.tasks.task_runner import TaskRunner, task_of, waiting_run
from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.protocol.eras.era import Method, Row

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly
    from axolotl_server.observation.observation import Observation

HOLD_SECONDS: Final = 60.0
"""How long a stored task keeps its slot while it waits for an answer; after that, it runs again with the answer."""
_REQUESTED: Final[Mapping[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
"""The capability of the revision that has tasks without an extension."""


class Tasks(Extension):
    """Runs calls as tasks, on the engine of the container or the one that the settings choose."""

    identifier = TASKS_EXTENSION
    works: bool | None = None
    """Whether this process runs stored tasks; None to do as the settings say."""
    _server: "ServerAssembly"

    def __init__(self, task_engine: Sequence[FeatureSet] = ()) -> None:
        self.given: ITaskEngine | None = next((item for one in task_engine for item in one.items), None)
        """The engine of the container, if it has one."""
        if self.given is not None and not isinstance(self.given, ITaskEngine):
            kind = type(self.given).__name__
            raise ConfigurationError(f"The role task_engine returned {kind}; expected ITaskEngine")

    def attach(self, server: "ServerAssembly", section: Any) -> None:
        self._server = server

    @cached_property
    def service(self) -> TaskService:
        """What both designs have in common."""
        server, settings = self._server, self._server.settings
        engine = make_engine(settings) if self.given is None else self.given
        waiting = partial(waiting_run, server.deadlines) if engine.durable else None
        layers, set_names = run_layers(server.layers, task_of, waiting), server.roles.set_names
        runner = TaskRunner(
            server.tool_methods,
            server.tools,
            TaskLayers(server.layers, Binder(settings, layers, server.runners, set_names)),
            server.inflight,
            era_of=lambda revision: server.eras.named(revision),  # noqa: PLW0108 - the eras are made later
            deadlines=server.deadlines,
            ask_timeout_seconds=settings.limits.ask_timeout_seconds,
            hold_seconds=HOLD_SECONDS if engine.durable else None,
        )
        decisions = None if server.audit is None else server.audit.decisions
        return TaskService(engine, runner, settings.tasks, decisions)

    @cached_property
    def _requested(self) -> RequestedTasks:
        return RequestedTasks(self._server.tool_methods, self.service)

    @cached_property
    def _directed(self) -> DirectedTasks:
        return DirectedTasks(self._server.tool_methods, self.service, self._server.subscriptions)

    def rows(self) -> Iterable[Row]:
        return (*self._requested.rows, *self._directed.rows)

    def around(self, name: str, method: Method, revision: Revision) -> Method:
        if name != "tools/call":
            return method
        if revision.tasks:
            return partial(self._requested.call, method)
        return partial(self._directed.call, method) if revision.stateless else method

    def topics(self) -> Mapping[str, Topic]:
        return {TOPIC: Topic("tasks", self._directed.own_tasks)}

    def capabilities(self, revision: Revision) -> Mapping[str, Any]:
        if revision.tasks:
            return {"tasks": _REQUESTED}
        return super().capabilities(revision) if revision.stateless else {}

    def health_checks(self) -> Iterable[IHealthCheck]:
        if self.service.engine.durable:
            from axolotl_server.health import StoreCheck  # few processes answer probes

            yield StoreCheck("task_store", self.service.engine.ping)

    def panels(self) -> Iterable[Panel]:
        from axolotl_server.extensions.tasks.task_list import TaskList  # few servers have a console

        shown = TaskList(self.service)
        yield Panel("tasks", shown.describe, {"cancel": shown.cancel})

    def worker_warnings(self) -> Iterable[str]:
        if self._server.settings.tasks.url is None and self.given is None:
            yield "only the worker that started a task knows it: set tasks.url, for example to sqlite:///tasks.db"

    def observe(self, observation: "Observation") -> None:
        from axolotl_server.extensions.tasks.task_telemetry import observe_tasks  # few servers are observed

        observe_tasks(self.service, observation)

    async def start(self) -> None:
        works = self._server.settings.tasks.run_here if self.works is None else self.works
        await self.service.start(works=works or not self.service.engine.durable)

    def pause(self) -> None:
        if self.service.engine.durable:
            self.service.pause()

    async def stop(self) -> None:
        self._requested.silence()
        await self.service.close()
