"""Which resources a principal may hear of."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ToolCall
from axolotl_core.policies.access import because_of
from axolotl_core.protocol.identity import Principal
from axolotl_server.authorization.authorization import Authorization, Denial, MissingScopes, forbidden, subject_of
from axolotl_server.calls.binding import encode_error
from axolotl_server.eras.era import Method, Methods
from axolotl_server.features.request_target import FindTarget, RequestTarget, RequestTargets
from axolotl_server.layers.authorization import AuthorizationLayer
from axolotl_server.messages.request import Request


class Guard:
    """Asks who may use a feature before the method that was asked for looks at the request."""

    def __init__(self, authorization: Authorization, doors: RequestTargets) -> None:
        self._authorization = authorization
        self._doors = doors

    def protect(self, methods: Methods) -> Methods:
        """Put the guard in front of those methods that name a feature."""
        doors = self._doors.by_method
        return {
            name: self._in_front_of(method, doors[name]) if name in doors else method
            for name, method in methods.items()
        }

    def _in_front_of(self, method: Method, door: FindTarget) -> Method:
        verdicts, waits = self._authorization.verdicts, self._authorization.waits
        concerns = self._authorization.concerns

        async def guarded(request: Request) -> bytes | None:
            sought = door(request)
            if sought is None:
                return await method(request)
            if sought.binding is None:
                return await self._tell_missing(sought, request)
            spec = subject_of(sought.binding.spec)
            if not concerns(spec):
                return await method(request)
            if waits:
                with _stoppable(request) as asking:
                    denial = await self._judge(sought, spec, request)
                if asking.reason is not None:
                    return asking.answer()
            else:
                denial = await self._judge(sought, spec, request)
            verdicts[request] = spec, denial
            try:
                return await (method(request) if denial is None else self._refuse(sought, spec, denial, request))
            finally:
                del verdicts[request]

        return guarded

    async def _judge(self, sought: RequestTarget, spec: FeatureSpec, request: Request) -> Denial | None:
        """Give the error that a request ends with, None where it may pass."""
        principal = request.exchange.principal
        decision = await self._authorization.decide(principal, spec)
        if decision.allowed is True:
            return None
        if self._authorization.hides:
            return because_of(await sought.missing(principal), decision)
        if isinstance(decision, MissingScopes) and (challenge := request.exchange.demand(decision.scopes)) is not None:
            return because_of(challenge, decision)
        return forbidden(spec, decision)

    async def _tell_missing(self, sought: RequestTarget, request: Request) -> bytes | None:
        """End a request for something that is not there.

        Where a decision takes time, one is made all the same, or a refusal would be known by how long it took.

        Raises:
            ProtocolError: that says so.
        """
        principal, other = request.exchange.principal, self._doors.any_spec() if self._authorization.waits else None
        with _stoppable(request) as asking:
            missing = await sought.missing(principal)
            if other is not None:
                await self._authorization.decide(principal, other)
        if asking.reason is not None:
            return asking.answer()
        raise missing

    async def _refuse(self, sought: RequestTarget, spec: FeatureSpec, denial: Denial, request: Request) -> bytes | None:
        """End a request with an error, after the layers around the feature have seen it."""
        try:
            if sought.runs:
                await _pass_layers(sought, request)
            raise denial
        except ToolError as error:
            if spec.kind == "tool":
                return encode_error(error.message, error.meta, request.era)
            raise InternalError(error.message, data=error.meta) from None


async def _pass_layers(sought: RequestTarget, request: Request) -> None:
    """Make a call that ends at the layer which knows the verdict."""
    binding, task = sought.binding, asyncio.current_task()
    assert binding is not None
    assert task is not None
    assert request.head.id is not UNSET
    if any(isinstance(layer, AuthorizationLayer) for layer in binding.layers):  # or nothing would stop it
        principal = request.exchange.principal
        spec, uri, raw = binding.spec, sought.uri, sought.raw
        await binding.invoke(ToolCall(request.head.id, request, principal, uri=uri, spec=spec, raw=raw, task=task))


@contextmanager
def _stoppable(request: Request) -> Iterator["_Asking"]:
    """Let the client stop a request of which nobody knows yet, while somebody decides."""
    connection, request_id, asking = request.connection, request.head.id, _Asking()
    assert request_id is not UNSET
    if connection is None or request_id in connection.calls:
        yield asking
        return
    connection.calls[request_id] = asking
    try:
        yield asking
    finally:
        del connection.calls[request_id]


class _Asking:
    """A request on which nobody has decided yet."""

    def __init__(self) -> None:
        self.reason: CancelReason | None = None

    def stop(self, reason: CancelReason) -> None:
        """Let it end when the decision is there."""
        self.reason = self.reason or reason

    def answer(self) -> bytes | None:
        """Say nothing to a caller that has gone.

        Raises:
            InternalError: where the caller is still there.
        """
        if self.reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
            return None
        meta = {"reason": "shutdown", "retryAfterMs": 1000}
        raise InternalError("The server is shutting down; try again", data=meta)


class ResourceWatch:
    """Keeps changes from those who may not read what changed."""

    def __init__(self, authorization: Authorization, doors: RequestTargets) -> None:
        self._authorization = authorization
        self._doors = doors

    async def hearable(self, principal: Principal, uris: Sequence[str]) -> tuple[str, ...]:
        """Leave out the URIs behind which there is nothing that the principal may read.

        Raises:
            InternalError: if nobody could decide.
        """
        found = {uri: binding.spec for uri in uris if (binding := self._doors.behind(uri)) is not None}
        specs = list(dict.fromkeys(found.values()))
        allowed = dict(zip(specs, await self._authorization.allowed(principal, specs), strict=True))
        return tuple(uri for uri in uris if uri in found and allowed[found[uri]])

    def kin_of(self, uri: str, parents: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """Give the URIs whose watchers hear of a change: of those that begin it, the ones of the same resource.

        Whoever watches a directory hears of its files where one template makes both. Behind any other URI may be
        something that the watcher may not read, and must not hear of.
        """
        binding = self._doors.behind(uri)
        return frozenset(one for one in parents(uri) if one == uri or self._doors.behind(one) is binding is not None)
