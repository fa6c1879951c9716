"""Faults of tools and stores, below all layers: deadlines, retries and breakers are real."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal, TypeAlias

from dependency_injector import containers, providers

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.names import did_you_mean
from axolotl_core.policies.quota import IQuotaStore, QuotaStoreError
from axolotl_core.policies.tool_rules import IResultStore, ResultStoreError
from axolotl_core.sessions import IEventStore
from axolotl_testing.assertions import indented

StoreName: TypeAlias = Literal["quotas", "results", "events"]
_Act: TypeAlias = "Callable[[InjectedFault, Call, Invoke], Awaitable[Any]]"

_STORES: Final[dict[str, tuple[str, type[Any], type[Exception]]]] = {
    "quotas": ("quota_store", IQuotaStore, QuotaStoreError),
    "results": ("result_store", IResultStore, ResultStoreError),
    "events": ("event_store", IEventStore, ConnectionError),
}
"""The role of each store, its port, and the error that a store raises while it is down."""


class InjectedFault:
    """Something that goes wrong, and how often it did."""

    def __init__(self, text: str, feature: str, act: _Act, times: int | None) -> None:
        self.text = text
        self.feature = feature
        self.act = act
        self.times = times
        self.used = 0

    @property
    def is_over(self) -> bool:
        """Whether it has happened as often as it should."""
        return self.times is not None and self.used >= self.times

    def problem(self) -> str | None:
        """Say how it was not used, if so."""
        if self.used >= (self.times or 1):
            return None
        return f"{self.text}: not used" if not self.used else f"{self.text}: used {self.used} of {self.times} times"


class Faults:
    """The faults of a test; the type of the fixture `axolotl_faults`.

    A fault of a tool happens in every call, or in the first ones with `times`. It can also name a prompt, or the URI of
    a resource. The test fails if a fault is not used.
    """

    def __init__(self, plan: "FaultPlan") -> None:
        self._plan = plan

    def slow(self, tool: str, seconds: float, *, times: int | None = None) -> None:
        """Wait before the code of a tool runs."""

        async def act(fault: InjectedFault, call: Call, call_next: Invoke) -> Any:
            fault.used += 1
            await asyncio.sleep(seconds)
            return await call_next(call)

        self._plan.add(f"slow({tool!r}, {seconds:g})", tool, act, times)

    def raises(self, tool: str, error: BaseException | type[BaseException], *, times: int | None = None) -> None:
        """Raise an exception instead of running the code of a tool."""

        async def act(fault: InjectedFault, call: Call, call_next: Invoke) -> Any:
            fault.used += 1
            raise error() if isinstance(error, type) else error.with_traceback(None)

        self._plan.add(f"raises({tool!r}, {error!r})", tool, act, times)

    def expire_deadline(self, tool: str, *, times: int | None = None) -> None:
        """Let the deadline of a call pass when its code would start, without waiting for it."""

        async def act(fault: InjectedFault, call: Call, call_next: Invoke) -> Any:
            fault.used += 1
            call.stop(CancelReason.TIMEOUT)
            await asyncio.get_running_loop().create_future()

        self._plan.add(f"expire_deadline({tool!r})", tool, act, times)

    def store_down(self, store: StoreName) -> None:
        """Let every use of a store fail, of clients that connect after this."""
        if store not in _STORES:
            hint = did_you_mean(store, _STORES, f"; there are {', '.join(_STORES)}")
            raise ValueError(f"There is no store {store!r}{hint}")

        async def nothing(fault: InjectedFault, call: Call, call_next: Invoke) -> Any:
            """A store is not used by the code of a call."""

        self._plan.stores[store] = InjectedFault(f"store_down({store!r})", "", nothing, None)


class FaultPlan:
    """Knows the faults of a test, applies them to containers, and checks that they happened."""

    def __init__(self) -> None:
        self.stores: dict[str, InjectedFault] = {}
        """The stores that are down."""
        self._faults: list[InjectedFault] = []
        self._known: set[str] = set()

    def add(self, text: str, feature: str, act: _Act, times: int | None) -> None:
        """Add a fault of a feature."""
        self._faults.append(InjectedFault(text, feature, act, times))

    @contextmanager
    def applied(self, container: containers.Container) -> Iterator[None]:
        """Add the faults to a container, and remove them after the block."""
        layers = container.providers.get("layers")
        given = () if layers is None else (layers,)
        roles: dict[str, Any] = {"layers": providers.List(*given, providers.Object(_FaultLayer(self)))}
        for name, fault in self.stores.items():
            role, port, error = _STORES[name]
            roles[role] = providers.Object(_broken(port, error, fault))
        before = {role: container.providers.get(role) for role in roles}
        for role, provider in roles.items():
            setattr(container, role, provider)
        try:
            yield
        finally:
            for role, provider in before.items():
                _restore(container, role, provider)

    def check(self) -> None:
        """Raise an AssertionError if a fault was not used."""
        __tracebackhide__ = True
        planned = [*self._faults, *self.stores.values()]
        found = [f"{problem}{self._hint(one)}" for one in planned if (problem := one.problem())]
        if found:
            raise AssertionError(f"These faults did not happen:{indented(found)}")

    def next_fault(self, feature: str) -> InjectedFault | None:
        """Find the fault of the next call of a feature."""
        folded = feature.casefold()
        return next((one for one in self._faults if one.feature.casefold() == folded and not one.is_over), None)

    def know(self, feature: str) -> None:
        """Remember the name of a feature."""
        self._known.add(feature)

    def _hint(self, fault: InjectedFault) -> str:
        """Explain an unused fault by a misspelled name."""
        if not fault.feature or not self._known or fault.feature.casefold() in map(str.casefold, self._known):
            return ""
        return f", because there is no {fault.feature!r}{did_you_mean(fault.feature, self._known)}"


class _FaultLayer(ILayer):
    """The innermost layer of all features, which calls the faults."""

    def __init__(self, plan: FaultPlan) -> None:
        self._plan = plan

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        self._plan.know(spec.name)

        async def invoke(call: Call) -> Any:
            fault = self._plan.next_fault(spec.name)
            return await (call_next(call) if fault is None else fault.act(fault, call, call_next))

        return invoke


def _broken(port: type[Any], error: type[Exception], fault: InjectedFault) -> Any:
    """Make a store whose methods fail."""

    async def fail(*_: Any, **__: Any) -> Any:
        fault.used += 1
        raise error("The store is down")

    return type(f"Broken{port.__name__[1:]}", (port,), dict.fromkeys(port.__abstractmethods__, fail))()


def _restore(container: containers.Container, role: str, provider: Any) -> None:
    if provider is not None:
        setattr(container, role, provider)
    else:
        with suppress(AttributeError):
            delattr(container, role)
