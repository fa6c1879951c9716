"""What was found, and what a probe is told of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from axolotl_core.health import HealthState
from axolotl_core.protocol.wire import encode

__all__ = ["Finding", "Report"]

_SEVERITY: Final[Mapping[HealthState, int]] = {"ok": 0, "degraded": 1, "failed": 2}
_REASON_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is."""

    name: str
    state: HealthState = "ok"
    reason: str | None = None
    seconds: float | None = None
    """How long it took to find out, where that takes time."""

    def described(self, details: bool) -> dict[str, Any]:
        """Describe it, with the reason where that may be read."""
        content: dict[str, Any] = {"status": self.state}
        if details and self.reason is not None:
            content["reason"] = self.reason[:_REASON_CHARACTERS]
        if details and self.seconds is not None:
            content["seconds"] = round(self.seconds, 4)
        return content


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found for one question."""

    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What is told besides."""

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Report":
        """Put findings together."""
        return cls(tuple(findings))

    @property
    def state(self) -> HealthState:
        """The worst of all."""
        return max((one.state for one in self.findings), key=_SEVERITY.__getitem__, default="ok")

    @property
    def status(self) -> int:
        """The HTTP status: what is degraded is good enough."""
        return 503 if self.state == "failed" else 200

    def body(self, details: bool) -> bytes:
        """Write it as JSON."""
        checks = {one.name: one.described(details) for one in self.findings}
        return encode({"status": self.state, **self.facts, "checks": checks})
