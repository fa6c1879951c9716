"""Rules of a tool for its calls: `Approval`, `Idempotency`, `Retry`, `Breaker`; `IResultStore`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from axolotl_core.errors import AxolotlError, ConfigurationError, ProtocolError, Refused, ToolError

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool


class Approval(msgspec.Struct, frozen=True):
    """How the user is asked to approve a call. The question always shows the tool and its arguments."""

    message: str | None = None
    """The question; None for the default."""
    arguments: tuple[str, ...] | None = None
    """The arguments to show, in this order; None for all."""


class NotApproved(Refused):
    """The user did not approve the call, so the tool did not run."""


class CannotAskForApproval(NotApproved):
    """The client could not ask the user, so the tool did not run. Another client may be able to."""


ClaimResult: TypeAlias = bytes | Literal["mine", "theirs"]
"""The stored result of a key, or who holds the key."""


class Idempotency(msgspec.Struct, frozen=True):
    """Lets a second call with the same key share the running call or its stored result.

    Keys are separate for each tool and each principal, identified by issuer, tenant and subject.
    """

    key: str | tuple[str, ...] | None = None
    """The arguments that form the key, by the names that callers use; None for a digest of all arguments. A call
    without one of these arguments has no key and is not deduplicated."""
    window_seconds: float = 600.0
    """How long a result is stored after the call."""
    store_failures: bool = False
    """Whether a `ToolError` raised by the tool, or a result with `is_error`, is stored, too."""
    same_arguments: bool = True
    """Whether a second call with the same key is refused if its other arguments differ."""

    def __post_init__(self) -> None:
        if not (isfinite(self.window_seconds) and self.window_seconds > 0):
            raise ConfigurationError(f"Idempotency has window_seconds={self.window_seconds}: use a number above 0")
        if self.key is not None and not self.arguments:
            raise ConfigurationError("Idempotency has an empty key: list arguments, or leave it out")

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments that form the key; empty for a digest of all."""
        return (self.key,) if isinstance(self.key, str) and self.key else tuple(self.key or ())


class ResultStoreError(AxolotlError):
    """The result store is unavailable. The text is written to the log and contains no secrets."""


class IResultStore(ABC):
    """Stores for each key its result, or who is working on it. Keys are short, and the server chooses them.

    Each method may raise ResultStoreError if the store is unavailable. The server decides what happens to the call.
    """

    renew_seconds: float | None = None
    """How often a claim must be renewed; None if it lasts until it is released."""

    @abstractmethod
    async def claim(self, key: str, holder: str) -> ClaimResult:
        """Return the stored result of a key. If there is none, assign the key to `holder`, unless another holds it.

        If several claim the key at the same time, exactly one gets it.
        """

    @abstractmethod
    async def renew(self, key: str, holder: str) -> bool:
        """Extend a claim. Return False if it was lost."""

    @abstractmethod
    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        """Store a result and release the key. Return False if another holder has the key."""

    @abstractmethod
    async def release(self, key: str, holder: str) -> None:
        """Release a key without a result. Do nothing if `holder` does not hold it."""

    async def close(self) -> None:
        """Close connections."""
        return


BreakerState: TypeAlias = Literal["closed", "open", "half_open"]
"""`closed`: calls run. `open`: calls are refused. `half_open`: one trial call runs."""

_PERMANENT_ERRORS: Final = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
"""Errors of the operating system that a retry does not resolve."""


class Retry(msgspec.Struct, frozen=True):
    """Runs the code of a tool again after transient errors, with exponential backoff and jitter."""

    attempts: int = 3
    """The maximum number of runs, including the first."""
    base_seconds: float = 0.1
    max_seconds: float = 2.0
    """The pause after run n is random, up to `base_seconds` * 2^(n - 1), and at most this."""
    on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, OSError)
    """The exceptions to retry. Missing files and permissions are permanent, and only retried if listed here."""

    def __post_init__(self) -> None:
        if self.attempts < 2:
            raise ConfigurationError(f"Retry has attempts={self.attempts}: use 2 or more, because the first run counts")
        _check_seconds("Retry", "base_seconds", self.base_seconds)
        _check_seconds("Retry", "max_seconds", self.max_seconds)
        kinds: tuple[Any, ...] = self.on
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, ToolError):
                raise ConfigurationError(
                    f"Retry has {kind!r} among its exceptions: list exception classes; a ToolError is a result and "
                    "never retried"
                )

    def covers(self, error: BaseException) -> bool:
        """Whether an error is retried. A group is, if all its errors are."""
        if isinstance(error, BaseExceptionGroup):
            return all(map(self.covers, error.exceptions))
        if isinstance(error, ToolError | ProtocolError) or not isinstance(error, self.on):
            return False
        named = tuple(kind for kind in self.on if issubclass(kind, _PERMANENT_ERRORS))
        return not isinstance(error, _PERMANENT_ERRORS) or isinstance(error, named)

    def longest_pause(self, attempt: int) -> float:
        """Return the maximum pause after a number of runs."""
        return min(self.max_seconds, self.base_seconds * 2.0 ** min(attempt - 1, 64))


class Breaker(msgspec.Struct, frozen=True):
    """A circuit breaker: refuses calls of a tool for a while after too many failures, then lets one trial call run."""

    failures: int = 5
    """The number of failed calls within the window that opens the breaker, ..."""
    share: float = 0.5
    """... if they are at least this share of all calls in the window."""
    window_seconds: float = 30.0
    open_seconds: float = 15.0
    """How long calls are refused before a trial call."""

    def __post_init__(self) -> None:
        if self.failures < 1:
            raise ConfigurationError(f"Breaker has failures={self.failures}: use 1 or more")
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Breaker has share={self.share}: use a number from 0 to 1")
        _check_seconds("Breaker", "window_seconds", self.window_seconds)
        _check_seconds("Breaker", "open_seconds", self.open_seconds)


def retry_hazards(tool: "ITool[Any, Any]", execution: str) -> Iterator[str]:
    """Describe why retries of a tool are dangerous or useless. Each text continues after the name of the tool."""
    if tool.retry is None:
        return
    hints = tool.annotations
    if hints.destructive is not False and not hints.read_only and not hints.idempotent:
        yield (
            "is retried, but may be destructive: set idempotent, read_only or destructive=False in its annotations if "
            "that is true; otherwise remove its retry"
        )
    if execution == "process" and not tool.retry.covers(Exception()):
        yield "is retried, but exceptions lose their type in a tool process: list Exception in its retry"


def _check_seconds(rule: str, name: str, seconds: float) -> None:
    if not (isfinite(seconds) and seconds > 0):
        raise ConfigurationError(f"{rule} has {name}={seconds}: use a number above 0")
