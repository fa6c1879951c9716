"""The revisions of the protocol with their tables of methods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from axolotl_core.resources.resource import CacheHint
from axolotl_server.calls.asking import AskingByRequest, AskingInRounds
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.eras.era import Eras, Method, Methods
from axolotl_server.protocol.eras.handshake import HandshakeEra
from axolotl_server.protocol.eras.stateless import StatelessEra
from axolotl_server.protocol.lifecycle import (
    Discovery,
    Handshake,
    capabilities_of,
    identity_of,
    ping,
    runs_tasks,
    set_level,
)
from axolotl_server.protocol.request import Request
from axolotl_server.protocol.subscriptions import SubscriptionMethods

if TYPE_CHECKING:
    from axolotl_server.extensions.tasks.directed_tasks import DirectedTasks
    from axolotl_server.hosting.assembly import ServerAssembly


def make_eras(assembly: "ServerAssembly") -> Eras:
    """Make an era for each revision, with the methods of the features that the server offers."""
    settings, roles = assembly.settings, assembly.roles
    capabilities = capabilities_of(roles.offers, roles.extensions, roles.tools)
    shared = _shared(assembly, capabilities)
    handshake = Handshake(settings.server, capabilities)
    stateful = {**shared, "initialize": handshake.initialize, "ping": ping, "logging/setLevel": set_level}
    requested, directed = _tasks(assembly) if runs_tasks(roles.tools) else ({}, None)
    stateless = _stateless(assembly, shared, capabilities, directed)
    decisions = None if assembly.audit is None else assembly.audit.decisions
    by_request = AskingByRequest(assembly.deadlines, settings.limits.ask_timeout_seconds, decisions)
    in_rounds = AskingInRounds(assembly.sealer, decisions)
    identity = identity_of(settings.server)
    hint = CacheHint(settings.caching.list_ttl_seconds, settings.caching.scope)
    eras = Eras(
        [
            *(
                HandshakeEra(
                    one,
                    _protected({**stateful, **requested} if one.tasks else stateful, assembly),
                    settings.protocol,
                    by_request,
                    assembly.tools.visible_to,
                )
                for one in HANDSHAKE_REVISIONS
            ),
            *(
                StatelessEra(
                    one,
                    _protected(stateless, assembly),
                    settings.protocol,
                    in_rounds,
                    assembly.tools.visible_to,
                    identity=identity,
                    list_hint=hint,
                )
                for one in STATELESS_REVISIONS
            ),
        ]
    )
    handshake.eras = eras
    return eras


def _protected(methods: Methods, assembly: "ServerAssembly") -> Methods:
    """Put quotas and the guard in front of methods, and the observers in front of both: they see what is refused."""
    guard, quotas, observers = assembly.guard, assembly.request_quotas, assembly.observers
    guarded = methods if guard is None else guard.protect(methods)
    guarded = guarded if quotas is None else quotas.protect(guarded)
    if not observers:
        return guarded
    return {name: _observed(name, method, observers) for name, method in guarded.items()}


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


def _tasks(assembly: "ServerAssembly") -> "tuple[Methods, DirectedTasks]":
    """Make the methods of tasks: those of the revision that has them, and those of the extension."""
    from axolotl_server.extensions.tasks.directed_tasks import DirectedTasks  # few servers have tasks
    from axolotl_server.extensions.tasks.requested_tasks import RequestedTasks

    tools, service = assembly.tool_methods, assembly.tasks
    directed = DirectedTasks(tools, service, assembly.subscriptions)
    return RequestedTasks(tools, service).methods, directed


def _shared(assembly: "ServerAssembly", capabilities: Mapping[str, Any]) -> dict[str, Method]:
    """Make the methods that revisions with a handshake have in common; the stateless one has most of them too."""
    methods: dict[str, Method] = {
        **{name: one.call for name, one in assembly.feature_methods.items() if name not in assembly.skill_methods},
        "tools/list": assembly.tools.list,
        "prompts/list": assembly.prompts.list,
        "resources/list": assembly.resources.list,
        "resources/templates/list": assembly.templates.list,
        "resources/subscribe": assembly.resource_methods.subscribe,
        "resources/unsubscribe": assembly.resource_methods.unsubscribe,
    }
    added = assembly.extension_methods
    return {**dict(_offered(methods, capabilities)), **dict.fromkeys(added.names, added.call)}


def _stateless(
    assembly: "ServerAssembly", shared: Methods, capabilities: Mapping[str, Any], tasks: "DirectedTasks | None"
) -> dict[str, Method]:
    watched = ("resources/subscribe", "resources/unsubscribe")
    methods = {name: method for name, method in shared.items() if name not in watched}
    methods["server/discover"] = Discovery(assembly.settings.server, capabilities).discover
    readable_uris = None if assembly.watch is None else assembly.watch.readable_uris
    listening = SubscriptionMethods(assembly.subscriptions, capabilities, tasks, readable_uris)
    methods["subscriptions/listen"] = listening.listen
    if assembly.skills is not None:
        methods["skills/list"] = assembly.skills.list
        methods.update((name, one.call) for name, one in assembly.skill_methods.items())
    return methods if tasks is None else {**methods, **tasks.methods}


def _offered(methods: Mapping[str, Method], capabilities: Mapping[str, Any]) -> Iterator[tuple[str, Method]]:
    """Leave out the methods of features that the server does not offer."""
    for name, method in methods.items():
        kind = name.partition("/")[0]
        if ("completions" if kind == "completion" else kind) in capabilities:
            yield name, method
