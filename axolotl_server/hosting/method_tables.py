"""The table of all methods and notifications, and the revisions with those that they have."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.versions import (
    HANDSHAKE_REVISIONS,
    LATEST_STATELESS_REVISION,
    REVISIONS,
    STATELESS_REVISIONS,
    Revision,
)
from axolotl_core.resources.resource import CacheHint
from axolotl_server.calls.asking import AskingByRequest, AskingInRounds
from axolotl_server.features.completion import CompletionMethods
from axolotl_server.features.prompts import PromptMethods
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.eras.era import Eras, IEra, Method, Row
from axolotl_server.protocol.eras.handshake import HandshakeEra
from axolotl_server.protocol.eras.stateless import StatelessEra
from axolotl_server.protocol.lifecycle import Discovery, Handshake, identity_of, initialized, ping, set_level
from axolotl_server.protocol.request import Request
from axolotl_server.protocol.subscriptions import SubscriptionMethods

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly


def method_table(assembly: "ServerAssembly") -> Iterable[Row]:
    """List all methods and notifications, those of extensions included."""
    rows = [*_own_rows(assembly), *assembly.extension_methods.rows]
    for extension in assembly.extensions:
        known, added = {row.method for row in rows}, tuple(extension.rows())
        for row in added:
            if row.method in known:
                raise ConfigurationError(
                    f"The extension {extension.identifier} adds the method {row.method!r}, which already exists. "
                    "Choose another name, or put a function around it"
                )
        rows += added
    return rows


def _own_rows(assembly: "ServerAssembly") -> Iterable[Row]:
    server, capabilities, inflight = assembly.settings.server, assembly.capabilities, assembly.inflight
    newest = capabilities[LATEST_STATELESS_REVISION]
    tools, prompts, resources = assembly.tools, assembly.prompts, assembly.resources
    handshake = Handshake(server, capabilities, lambda: assembly.eras)
    calling, getting, reading = assembly.tool_methods, PromptMethods(prompts, inflight), assembly.resource_methods
    completing = CompletionMethods(prompts, assembly.templates, inflight)
    readable_uris = None if assembly.watch is None else assembly.watch.readable_uris
    topics = {name: topic for one in assembly.extensions for name, topic in one.topics().items()}
    listening = SubscriptionMethods(assembly.subscriptions, newest, topics, readable_uris)
    return (
        # method, or notification       revisions            if it has      answered by                 names a feature
        Row("initialize",                HANDSHAKE_REVISIONS, None,          handshake.initialize),
        Row("notifications/initialized", HANDSHAKE_REVISIONS, None,          initialized),
        Row("server/discover",           STATELESS_REVISIONS, None,          Discovery(server, newest).discover),
        Row("ping",                      HANDSHAKE_REVISIONS, None,          ping),
        Row("logging/setLevel",          HANDSHAKE_REVISIONS, None,          set_level),
        Row("notifications/cancelled",   REVISIONS,           None,          assembly.control.cancelled),
        Row("tools/list",                REVISIONS,           "tools",       tools.list),
        Row("tools/call",                REVISIONS,           "tools",       calling.call,               calling),
        Row("prompts/list",              REVISIONS,           "prompts",     prompts.list),
        Row("prompts/get",               REVISIONS,           "prompts",     getting.call,               getting),
        Row("resources/list",            REVISIONS,           "resources",   resources.list),
        Row("resources/templates/list",  REVISIONS,           "resources",   assembly.templates.list),
        Row("resources/read",            REVISIONS,           "resources",   reading.call,               reading),
        Row("resources/subscribe",       HANDSHAKE_REVISIONS, "resources",   reading.subscribe,          reading),
        Row("resources/unsubscribe",     HANDSHAKE_REVISIONS, "resources",   reading.unsubscribe),
        Row("subscriptions/listen",      STATELESS_REVISIONS, None,          listening.listen),
        Row("completion/complete",       REVISIONS,           "completions", completing.call,            completing),
    )  # fmt: skip


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
            if revision not in row.revisions or not (row.needs is None or row.needs in assembly.capabilities[revision]):
                continue
            if row.method.startswith("notifications/"):
                notifications[row.method] = row.answer
            else:
                methods[row.method] = _protected(row, revision, assembly)
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


def _protected(row: Row, revision: Revision, assembly: "ServerAssembly") -> Method:
    """Let extensions wrap a method, the last one outermost. Put quotas and the guard in front of it, and the observers
    in front of both: they see what is refused.
    """
    for extension in assembly.extensions:
        row = row._replace(answer=extension.around(row.method, row.answer, revision))
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
