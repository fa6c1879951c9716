"""The layers around every feature, in their order."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Layer
from axolotl_server.calls.binding import Layers
from axolotl_server.layers.approval import ApprovalLayer
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import Bulkhead, ConcurrencyLayer
from axolotl_server.layers.deadline import validation
from axolotl_server.layers.idempotency.layer import IdempotencyLayer
from axolotl_server.layers.retry import RetryLayer
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from msgspec import Raw

    from axolotl_server.hosting.assembly import ServerAssembly


def layer_stack(assembly: "ServerAssembly") -> Layers:
    """Make the layers that the settings and roles ask for, the outermost first."""
    settings, audit, observation = assembly.settings, assembly.audit, assembly.observation
    # Observers and audit are outside of the encoding, because a result that cannot be sent is a failure. Even the
    # audit can refuse a call, which observers report. The audit records what everything further in refuses.
    # Authorization: a denied caller learns nothing else, not even whether the arguments are valid.
    # Quota: before validation, because invalid calls cost time too.
    # Validation: an invalid call takes no slot and starts no deadline.
    # Deadline: covers all waiting, for a call with the same key, for a person, for a slot.
    # Idempotency: a call that joins another, or gets a stored result, needs no approval and no slot.
    # Approval: a call that waits for a person takes no slot.
    # Concurrency: a slot is taken last and held only while code runs.
    # Circuit breaker: inside of concurrency, so that the call that tests the upstream already has its slot; around the
    # retries, so that it counts what the caller sees.
    # Start record: written when only the code is left to run, so that a refused call does not look interrupted.
    # Retries repeat only the user's layers and the code.
    outer: list[Layer | None] = [
        _observers(assembly),
        *(() if observation is None else observation.layers),
        None if audit is None else audit.layer,
    ]
    inner: list[Layer | None] = [
        assembly.authorization,
        _quota(assembly),
        validation,
        assembly.deadlines.timeout,
        _idempotency(assembly),
        ApprovalLayer(_redactor, settings.approval.required_for, settings.approval.tools),
        _concurrency(settings),
        BreakerLayer(),
        None if audit is None else audit.layer.announce,
        RetryLayer(),
        *(layer for one in assembly.extensions for layer in one.layers()),
        *assembly.roles.layers,
    ]
    return Layers(
        tuple(layer for layer in outer if layer is not None), tuple(layer for layer in inner if layer is not None)
    )


def _observers(assembly: "ServerAssembly") -> Layer | None:
    if not assembly.observers:
        return None
    from axolotl_server.layers.call_ending import ObserverLayer

    return ObserverLayer(assembly.observers)


def _quota(assembly: "ServerAssembly") -> Layer | None:
    if assembly.quota_store is None:
        return None
    from axolotl_server.access.quotas import quota_layer

    return quota_layer(assembly.settings.quotas, assembly.quota_store)


def _idempotency(assembly: "ServerAssembly") -> Layer:
    close, on_failure = assembly.inflight.scope_closer.close, assembly.settings.idempotency.on_store_failure
    store, outages = assembly.result_store, assembly.result_outages
    return IdempotencyLayer(store, close, outages, assembly.deadlines, on_store_failure=on_failure)


def _redactor(spec: FeatureSpec) -> "Callable[[bytes], Raw | None] | None":
    from axolotl_server.audit.redaction import redactor  # few tools need approval

    return redactor(spec)


def _concurrency(settings: ServerSettings) -> ConcurrencyLayer:
    limits = settings.limits
    queue, patience = limits.queue_limit, limits.queue_timeout_seconds
    server = None
    if limits.max_concurrency is not None:
        server = Bulkhead("The server", limits.max_concurrency, queue, patience)
    toolsets = {
        name: Bulkhead(f"The tool set {name}", overrides.max_concurrency, queue, patience)
        for name, overrides in settings.toolsets.items()
        if overrides.max_concurrency is not None
    }
    return ConcurrencyLayer(server, toolsets)
