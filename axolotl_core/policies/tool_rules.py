"""Upstreams that fail: when a tool is run again, and when it is left alone for a while."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from axolotl_core.errors import AxolotlError, ConfigurationError, ProtocolError, Refused, ToolError

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool


@dataclass(frozen=True, slots=True)
class Approval:
    """How the user is asked before each run of a tool; the question always names the tool and shows its arguments."""

    message: str | None = None
    """The question, in words of the tool's own."""
    arguments: tuple[str, ...] | None = None
    """Which arguments are shown, in this order; all where this is None."""


class NotApproved(Refused):
    """The user was asked and did not say yes, so that the tool did not run."""


class CannotAskForApproval(NotApproved):
    """The user could not be asked, so that the tool did not run; another client may be able to ask."""


Claim: TypeAlias = bytes | Literal["mine", "theirs"]
"""What is stored under a key, or who has it now."""


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Lets a second call with the same key share the running one, or have its stored result.

    Keys belong to one tool and one principal, known by its issuer, tenant and subject.
    """

    key: str | tuple[str, ...] | None = None
    """The arguments that make the key, by the names that callers use; the digest of all of them where it is None. A
    call without a value for one of them is a call like any other."""
    window_seconds: float = 600.0
    """How long a result is stored, counted from the end of the work."""
    store_failures: bool = False
    """Whether a `ToolError` of the tool's own, or a result that is an error, is stored like a result."""
    same_arguments: bool = True
    """Whether a second call with the key must have the same other arguments too; it is refused if it has not."""

    def __post_init__(self) -> None:
        if not (isfinite(self.window_seconds) and self.window_seconds > 0):
            raise ConfigurationError(f"Idempotency has window_seconds={self.window_seconds}: use a number above 0")
        if self.key is not None and not self.arguments:
            raise ConfigurationError("Idempotency has an empty key: name arguments, or leave it out")

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments that make the key; none where their digest does."""
        return (self.key,) if isinstance(self.key, str) and self.key else tuple(self.key or ())


class ResultStoreError(AxolotlError):
    """A store cannot tell what was done; the text is for the log and holds no secret."""


class IResultStore(ABC):
    """Knows for each key who does its work, or what came of it. Keys are short, and made by the server.

    Every method may raise ResultStoreError if the store is away; what happens to calls then is not the store's to say.
    """

    renew_seconds: float | None = None
    """How often a claim has to be renewed; None where it holds until it is released."""

    @abstractmethod
    async def claim(self, key: str, holder: str) -> Claim:
        """Give what is stored under a key; where nothing is, give the key to `holder`, unless another one has it.

        Of several that want the key at the same time, one gets it.
        """

    @abstractmethod
    async def renew(self, key: str, holder: str) -> bool:
        """Hold a key for longer; the answer is False if it was lost."""

    @abstractmethod
    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        """Store what came of the work and let go of the key; the answer is False if another one has it by now."""

    @abstractmethod
    async def release(self, key: str, holder: str) -> None:
        """Let go of a key without a result; nothing happens if it is not held."""

    async def close(self) -> None:
        """Let go of connections."""
        return


BreakerState: TypeAlias = Literal["closed", "open", "half_open"]
"""`closed`: calls run. `open`: they are refused. `half_open`: one may try."""

_LASTING: Final = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
"""Errors of the operating system that a second try does not change."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Runs the code of a tool again when it raises what may pass, after pauses that grow and are random."""

    attempts: int = 3
    """How often the code runs at most, the first run included."""
    base_seconds: float = 0.1
    max_seconds: float = 2.0
    """The pause before run n + 1 is any time up to `base_seconds` * 2^(n - 1), but not more than this."""
    on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, OSError)
    """Which exceptions. Missing files and missing rights do not pass: they count only where they are named."""

    def __post_init__(self) -> None:
        if self.attempts < 2:
            raise ConfigurationError(f"Retry has attempts={self.attempts}: the first run counts too, so use 2 or more")
        _check_seconds("Retry", "base_seconds", self.base_seconds)
        _check_seconds("Retry", "max_seconds", self.max_seconds)
        kinds: tuple[Any, ...] = self.on
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, ToolError):
                raise ConfigurationError(
                    f"Retry has {kind!r} among its exceptions: name classes of exceptions; "
                    "a ToolError is an answer, and is never tried again"
                )

    def covers(self, error: BaseException) -> bool:
        """Tell whether the code may run again after this; a group, if that holds for all that is in it."""
        if isinstance(error, BaseExceptionGroup):
            return all(map(self.covers, error.exceptions))
        if isinstance(error, ToolError | ProtocolError) or not isinstance(error, self.on):
            return False
        named = tuple(kind for kind in self.on if issubclass(kind, _LASTING))
        return not isinstance(error, _LASTING) or isinstance(error, named)

    def longest_pause(self, attempt: int) -> float:
        """Say how long the pause after that many runs may be."""
        return min(self.max_seconds, self.base_seconds * 2.0 ** min(attempt - 1, 64))


@dataclass(frozen=True, slots=True)
class Breaker:
    """Refuses the calls of a tool for a while when too many of them failed; then one call tries."""

    failures: int = 5
    """How many calls must have failed within the window,"""
    share: float = 0.5
    """and which share of all calls in it they must be at least."""
    window_seconds: float = 30.0
    open_seconds: float = 15.0
    """How long calls are refused before one may try."""

    def __post_init__(self) -> None:
        if self.failures < 1:
            raise ConfigurationError(f"Breaker has failures={self.failures}: use 1 or more")
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Breaker has share={self.share}: use a number from 0 to 1")
        _check_seconds("Breaker", "window_seconds", self.window_seconds)
        _check_seconds("Breaker", "open_seconds", self.open_seconds)


def retry_hazards(tool: "ITool[Any, Any]", execution: str) -> Iterator[str]:
    """Say why it may be unwise, or useless, to run a tool again; each finding goes on after its name."""
    if tool.retry is None:
        return
    said = tool.annotations
    if said.destructive is not False and not said.read_only and not said.idempotent:
        yield (
            "is retried, but may destroy something twice: say in its annotations that it is idempotent, read_only or "
            "not destructive if that is so, else take its retry away"
        )
    if execution == "process" and not tool.retry.covers(Exception()):
        yield "is retried, but what code raises in a process is no longer of its type: name Exception in its retry"


def _check_seconds(rule: str, name: str, seconds: float) -> None:
    if not (isfinite(seconds) and seconds > 0):
        raise ConfigurationError(f"{rule} has {name}={seconds}: use a number above 0")
