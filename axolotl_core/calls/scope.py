"""What lives as long as one call: made when its code first asks for it, finalised after the answer."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from axolotl_core.errors import ToolCancelled

if TYPE_CHECKING:
    from axolotl_core.calls.context import ToolContext

Scoped: TypeAlias = Callable[[], Any]
"""Makes something for one call, such as a `provider` of a container; what is a context manager is entered."""

_making_for: Final[ContextVar["ToolContext"]] = ContextVar("axolotl_making_for")


def current_call() -> "ToolContext":
    """Give the call for which something is being made; for providers that need its principal or its cancellation.

    Raises:
        LookupError: outside of that.
    """
    return _making_for.get()


class Entered(NamedTuple):
    """Something that was entered; when it is left, it is told the error that the call ended with, if it did."""

    manager: Any
    waits: bool
    """Whether leaving it has to be awaited; leaving what does not wait may block."""

    def leave(self, error: BaseException | None) -> Any:
        """Leave it; the answer is to be awaited where it waits."""
        exit = self.manager.__aexit__ if self.waits else self.manager.__exit__
        return exit(type(error) if error else None, error, error.__traceback__ if error else None)


class _Late(NamedTuple):
    """Why something that was made is not needed: somebody else has made it meanwhile, or the call was stopped."""

    value: Any = None
    error: ToolCancelled | None = None

    def given(self) -> Any:
        """Give what counts instead."""
        if self.error is not None:
            raise self.error
        return self.value


class CallScope:
    """All that was made for one call, each thing once.

    A thread may still make something while the scope is closed, because its call has ended without it. Whatever comes
    too late is left again by who made it.
    """

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self._entered: list[Entered] = []
        self._lock = Lock()
        self._closed = False

    async def enter(self, factory: Scoped, context: "ToolContext") -> Any:
        """Give what a factory makes for this call.

        Raises:
            ToolCancelled: if the call was stopped before it was there.
        """
        if self._has(factory, context):
            return self._made[factory]
        entered = None
        with _making(context):
            value: Any = factory()
            if inspect.isawaitable(value):
                value = await value
            if hasattr(value, "__aenter__"):
                entered = Entered(value, waits=True)
                value = await value.__aenter__()
            elif hasattr(value, "__enter__"):
                entered = Entered(value, waits=False)
                value = value.__enter__()
        late = self._keep(factory, value, entered, context)
        if late is None:
            return value
        if entered is not None:
            left = entered.leave(late.error)
            if entered.waits:
                await left
        return late.given()

    def open(self, factory: Scoped, context: "ToolContext") -> Any:
        """Give what a factory makes for this call, where the code cannot wait.

        Raises:
            ToolCancelled: if the call was stopped before it was there.
            TypeError: if what the factory makes has to be awaited.
        """
        if self._has(factory, context):
            return self._made[factory]
        entered = None
        with _making(context):
            value: Any = factory()
            _refuse_awaitable(value)
            if hasattr(value, "__enter__"):
                entered = Entered(value, waits=False)
                value = value.__enter__()
        late = self._keep(factory, value, entered, context)
        if late is None:
            return value
        if entered is not None:
            entered.leave(late.error)
        return late.given()

    def close(self) -> tuple[Entered, ...]:
        """Take nothing more; answers what is to be left, the last that was made first."""
        with self._lock:
            self._closed = True
            last, self._entered = self._entered, []
        return tuple(reversed(last))

    def _has(self, factory: Any, context: "ToolContext") -> bool:
        if self._closed or (context.cancelled and factory not in self._made):
            raise _stopped()
        return factory in self._made

    def _keep(self, factory: Any, value: Any, entered: Entered | None, context: "ToolContext") -> _Late | None:
        """Keep what was made, unless it comes too late."""
        with self._lock:
            if self._closed or context.cancelled:
                return _Late(error=_stopped())
            if factory in self._made:
                return _Late(self._made[factory])
            self._made[factory] = value
            if entered is not None:
                self._entered.append(entered)
            return None


@contextmanager
def _making(context: "ToolContext") -> Iterator[None]:
    token = _making_for.set(context)
    try:
        yield
    finally:
        _making_for.reset(token)


def _refuse_awaitable(value: Any) -> None:
    if inspect.isawaitable(value) or (hasattr(value, "__aenter__") and not hasattr(value, "__enter__")):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"{type(value).__name__} has to be awaited: write await context.enter(...) in an async def")


def _stopped() -> ToolCancelled:
    return ToolCancelled("The call was stopped: nothing can be made for it any more")
