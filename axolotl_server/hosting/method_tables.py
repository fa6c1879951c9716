"""The table of all methods and notifications, and the revisions with those that they have."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_core.resources.resource import CacheHint
from axolotl_server.calls.asking import AskingByRequest, AskingInRounds
from axolotl_server.features.completion import CompletionMethods
from axolotl_server.features.prompts import PromptMethods
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.eras.era import (
    Eras,
    IEra,
    Method,
    Row,
    every_revision,
    with_handshake,
    without_handshake,
)
from axolotl_server.protocol.eras.handshake import HandshakeEra
from axolotl_server.protocol.eras.stateless import StatelessEra
from axolotl_server.protocol.lifecycle import (
    Discovery,
    Handshake,
    identity_of,
    initialized,
    ping,
    runs_tasks,
    set_level,
)
from axolotl_server.protocol.request import Request
from axolotl_server.protocol.subscriptions import SubscriptionMethods

if TYPE_CHECKING:
    from axolotl_server.extensions.tasks.directed_tasks import DirectedTasks
    from axolotl_server.hosting.assembly import ServerAssembly


def method_table(assembly: "ServerAssembly") -> Iterable[Row]:
    """List all methods and notifications; of two rows for one method and revision, the later one counts."""
    server, capabilities, inflight = assembly.settings.server, assembly.capabilities, assembly.inflight
    tools, prompts, resources = assembly.tools, assembly.prompts, assembly.resources
    handshake = Handshake(server, capabilities, lambda: assembly.eras)
    calling, getting, reading = assembly.tool_methods, PromptMethods(prompts, inflight), assembly.resource_methods
    completing = CompletionMethods(prompts, assembly.templates, inflight)
    task_rows, directed_tasks = _tasks(assembly) if runs_tasks(assembly.roles.tools) else ((), None)
    readable_uris = None if assembly.watch is None else assembly.watch.readable_uris
    listening = SubscriptionMethods(assembly.subscriptions, capabilities, directed_tasks, readable_uris)
    return (
        # method, or notification       revisions          if it has      answered by                 names a feature
        Row("initialize",                with_handshake,    None,          handshake.initialize),
        Row("notifications/initialized", with_handshake,    None,          initialized),
        Row("server/discover",           without_handshake, None,          Discovery(server, capabilities).discover),
        Row("ping",                      with_handshake,    None,          ping),
        Row("logging/setLevel",          with_handshake,    None,          set_level),
        Row("notifications/cancelled",   every_revision,    None,          assembly.control.cancelled),
        Row("tools/list",                every_revision,    "tools",       tools.list),
        Row("tools/call",                every_revision,    "tools",       calling.call,               calling),
        Row("prompts/list",              every_revision,    "prompts",     prompts.list),
        Row("prompts/get",               every_revision,    "prompts",     getting.call,               getting),
        Row("resources/list",            every_revision,    "resources",   resources.list),
        Row("resources/templates/list",  every_revision,    "resources",   assembly.templates.list),
        Row("resources/read",            every_revision,    "resources",   reading.call,               reading),
        Row("resources/subscribe",       with_handshake,    "resources",   reading.subscribe,          reading),
        Row("resources/unsubscribe",     with_handshake,    "resources",   reading.unsubscribe),
        Row("subscriptions/listen",      without_handshake, None,          listening.listen),
        Row("completion/complete",       every_revision,    "completions", completing.call,            completing),
        *assembly.extension_methods.rows,
        *_skill_rows(assembly),
        *task_rows,
    )  # fmt: skip


def _skill_rows(assembly: "ServerAssembly") -> Iterable[Row]:
    if assembly.skills is None:
        return ()
    from axolotl_server.extensions.skills.skill_methods import skill_rows  # few servers have skills

    return skill_rows(assembly.skills, assembly.inflight)


def _tasks(assembly: "ServerAssembly") -> "tuple[Iterable[Row], DirectedTasks]":
    """Make the methods of tasks: those of the revision that has them, and those of the extension."""
    from axolotl_server.extensions.tasks.directed_tasks import DirectedTasks  # few servers have tasks
    from axolotl_server.extensions.tasks.requested_tasks import RequestedTasks

    tools, service = assembly.tool_methods, assembly.tasks
    directed = DirectedTasks(tools, service, assembly.subscriptions)
    return (*RequestedTasks(tools, service).rows, *directed.rows), directed


def make_eras(assembly: "ServerAssembly") -> Eras:
    """Make an era for each revision, with the rows of the table that the revision and the server have."""
    settings = assembly.settings
    decisions = None if assembly.audit is None else assembly.audit.decisions
    by_request = AskingByRequest(assembly.deadlines, settings.limits.ask_timeout_seconds, decisions)
    in_rounds = AskingInRounds(assembly.sealer, decisions)
    identity = identity_of(settings.server)
    hint = CacheHint(settings.caching.list_ttl_seconds, settings.caching.scope)

    def make_era(revision: Revision) -> IEra:
        methods: dict[str, Method] = {}
        notifications: dict[str, Method] = {}
        for row in assembly.method_table:
            if not row.revisions(revision) or not (row.needs is None or row.needs in assembly.capabilities):
                continue
            if row.method.startswith("notifications/"):
                notifications[row.method] = row.answer
            else:
                methods[row.method] = _protected(row, assembly)
        return (StatelessEra if revision.stateless else HandshakeEra)(
            revision,
            methods=methods,
            notifications=notifications,
            settings=settings.protocol,
            asking=in_rounds if revision.stateless else by_request,
            visible_tools=assembly.tools.visible_to,
            identity=identity,
            list_hint=hint,
        )

    return Eras([make_era(revision) for revision in REVISIONS])


def _protected(row: Row, assembly: "ServerAssembly") -> Method:
    """Put quotas and the guard in front of a method, and the observers in front of both: they see what is refused."""
    guard, quotas, observers = assembly.guard, assembly.request_quotas, assembly.observers
    method = row.answer if guard is None else guard.in_front_of(row)
    method = method if quotas is None else quotas.in_front_of(method)
    return _observed(row.method, method, observers) if observers else method


def _observed(name: str, method: Method, observers: Sequence[IObserver]) -> Method:
    async def observed(request: Request) -> bytes | None:
        for observer in observers:
            observer.request_begun(request, name)
        try:
            result = await method(request)
        except BaseException as error:
            for observer in observers:
                observer.request_answered(request, None, error)
            raise
        for observer in observers:
            observer.request_answered(request, result, None)
        return result

    return observed
