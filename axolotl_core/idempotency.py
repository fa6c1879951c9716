"""Work that must not be done twice: the rule that a tool states, and the port of the store that knows what was done."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

from axolotl_core.errors import AxolotlError, ConfigurationError

__all__ = ["Claim", "IResultStore", "Idempotency", "ResultStoreError"]

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
