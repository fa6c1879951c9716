"""Objects that live as long as a call: created on first use, closed after the reply."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from axolotl_core.errors import ToolCancelled

if TYPE_CHECKING:
    from axolotl_core.calls.context import Context

Scoped: TypeAlias = Callable[[], Any]
"""Creates an object for one call, such as a `provider` of a container. A context manager is entered."""

_current_call: Final[ContextVar["Context"]] = ContextVar("axolotl_current_call")


def current_call() -> "Context":
    """Return the call that an object is being created for, for providers that need its principal or cancellation.

    Raises:
        LookupError: if no object is being created.
    """
    return _current_call.get()


class Entered(NamedTuple):
    """A context manager that was entered."""

    manager: Any
    is_async: bool
    """Whether `leave` returns an awaitable. If it does not, it may block."""

    def leave(self, error: BaseException | None) -> Any:
        """Exit the context manager, with the exception that ended the call."""
        exit = self.manager.__aexit__ if self.is_async else self.manager.__exit__
        return exit(type(error) if error else None, error, error.__traceback__ if error else None)


class _Superseded(NamedTuple):
    """Why an object is not needed: another thread created it first, or the call was stopped."""

    value: Any = None
    error: ToolCancelled | None = None

    def unwrap(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class CallScope:
    """The objects of one call, each created once.

    A thread may still be creating an object when the scope is closed, because its call has already ended. It then
    closes the object itself.
    """

    def __init__(self) -> None:
        self._objects: dict[Any, Any] = {}
        self._entered: list[Entered] = []
        self._lock = Lock()
        self._closed = False

    async def enter(self, factory: Scoped, context: "Context") -> Any:
        """Return the object that a factory creates for this call.

        Raises:
            ToolCancelled: if the call was stopped before the object was ready.
        """
        if self._has(factory, context):
            return self._objects[factory]
        entered = None
        with _creating(context):
            value: Any = factory()
            if inspect.isawaitable(value):
                value = await value
            if hasattr(value, "__aenter__"):
                entered = Entered(value, is_async=True)
                value = await value.__aenter__()
            elif hasattr(value, "__enter__"):
                entered = Entered(value, is_async=False)
                value = value.__enter__()
        superseded = self._keep(factory, value, entered, context)
        if superseded is None:
            return value
        if entered is not None:
            left = entered.leave(superseded.error)
            if entered.is_async:
                await left
        return superseded.unwrap()

    def open(self, factory: Scoped, context: "Context") -> Any:
        """Like `enter`, for code that cannot await.

        Raises:
            ToolCancelled: if the call was stopped before the object was ready.
            TypeError: if the object must be awaited.
        """
        if self._has(factory, context):
            return self._objects[factory]
        entered = None
        with _creating(context):
            value: Any = factory()
            if inspect.isawaitable(value) or (hasattr(value, "__aenter__") and not hasattr(value, "__enter__")):
                if inspect.iscoroutine(value):
                    value.close()
                kind = type(value).__name__
                raise TypeError(f"{kind} must be awaited: write await context.enter(...) in an async def")
            if hasattr(value, "__enter__"):
                entered = Entered(value, is_async=False)
                value = value.__enter__()
        superseded = self._keep(factory, value, entered, context)
        if superseded is None:
            return value
        if entered is not None:
            entered.leave(superseded.error)
        return superseded.unwrap()

    def close(self) -> tuple[Entered, ...]:
        """Close the scope, and return what must be left, the latest first."""
        with self._lock:
            self._closed = True
            last, self._entered = self._entered, []
        return tuple(reversed(last))

    def _has(self, factory: Any, context: "Context") -> bool:
        if self._closed or (context.cancelled and factory not in self._objects):
            raise _stopped()
        return factory in self._objects

    def _keep(self, factory: Any, value: Any, entered: Entered | None, context: "Context") -> _Superseded | None:
        with self._lock:
            if self._closed or context.cancelled:
                return _Superseded(error=_stopped())
            if factory in self._objects:
                return _Superseded(self._objects[factory])
            self._objects[factory] = value
            if entered is not None:
                self._entered.append(entered)
            return None


@contextmanager
def _creating(context: "Context") -> Iterator[None]:
    token = _current_call.set(context)
    try:
        yield
    finally:
        _current_call.reset(token)


def _stopped() -> ToolCancelled:
    return ToolCancelled("The call was stopped; nothing can be created for it anymore")
