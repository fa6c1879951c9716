"""The layers that a server's settings and roles ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, ToolCall
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_server.layers.approval import ApprovalLayer
from axolotl_server.layers.authorization import AuthorizationLayer
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import Bulkhead, ConcurrencyLayer
from axolotl_server.layers.deadline import DeadlineTable, TimeoutLayer, ValidationLayer
from axolotl_server.layers.idempotency.layer import IdempotencyLayer
from axolotl_server.layers.retry import RetryLayer
from axolotl_server.lifecycle.outage_log import OutageLog
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from msgspec import Raw

    from axolotl_core.policies.quota import IQuotaStore
    from axolotl_server.audit.assembly import Audit
    from axolotl_server.authorization.authorization import Authorization


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalLayers:
    """What a server has beyond the arguments and the deadline, by its place."""

    deciding: Sequence[ILayer] = ()
    """Authorization, quota."""
    guarding: Sequence[ILayer] = ()
    """Idempotency, approval, concurrency, breaker, the start of a record, retry."""


def default_layers(
    deadlines: DeadlineTable, user_layers: Sequence[ILayer], optional: OptionalLayers
) -> tuple[ILayer, ...]:
    """Put the framework's layers around the user's."""
    return (*optional.deciding, ValidationLayer(), TimeoutLayer(deadlines), *optional.guarding, *user_layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What stands behind the layers."""

    result_store: IResultStore
    close_scope: Callable[[ToolCall], object]
    """Closes the objects that a call has entered."""
    audit: "Audit | None" = None
    authorization: "Authorization | None" = None
    quota_store: "IQuotaStore | None" = None


def optional_layers(settings: ServerSettings, policies: Policies) -> OptionalLayers:
    """Make what is asked for, and nothing else."""
    audit, authorization = policies.audit, policies.authorization
    deciding: list[ILayer] = []
    if authorization is not None:
        deciding.append(AuthorizationLayer(authorization))
    if policies.quota_store is not None:
        from axolotl_server.quotas import quota_layer

        deciding.append(quota_layer(settings.quotas, policies.quota_store))
    guarding = [_idempotency(settings, policies), _approval(settings), _concurrency(settings), BreakerLayer()]
    if audit is not None and audit.intent is not None:
        guarding.append(audit.intent)
    return OptionalLayers(deciding=deciding, guarding=[*guarding, RetryLayer()])


def _idempotency(settings: ServerSettings, policies: Policies) -> ILayer:
    said = settings.idempotency
    return IdempotencyLayer(
        policies.result_store,
        policies.close_scope,
        OutageLog("The result store", "calls run unprotected" if said.on_store_failure == "open" else "calls refused"),
        max_record_bytes=said.max_record_bytes,
        on_store_failure=said.on_store_failure,
        store_timeout_seconds=said.store_timeout_seconds,
    )


def _approval(settings: ServerSettings) -> ILayer:
    return ApprovalLayer(_redactor, settings.approval.required_for, settings.approval.tools)


def _redactor(spec: FeatureSpec) -> "Callable[[bytes], Raw | None] | None":
    from axolotl_server.audit.redaction import redactor  # needed by tools that need approval, and no others

    return redactor(spec)


def _concurrency(settings: ServerSettings) -> ConcurrencyLayer:
    limits = settings.limits
    server = None
    if limits.max_concurrency is not None:
        server = Bulkhead("The server", limits.max_concurrency, limits.queue_limit, limits.queue_timeout_seconds)
    toolsets = {
        name: Bulkhead(
            f"The tool set {name}",
            said.max_concurrency,
            limits.queue_limit if said.queue_limit is None else said.queue_limit,
            limits.queue_timeout_seconds if said.queue_timeout_seconds is None else said.queue_timeout_seconds,
        )
        for name, said in settings.toolsets.items()
        if said.max_concurrency is not None
    }
    return ConcurrencyLayer(server, toolsets)
