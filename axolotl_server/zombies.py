"""Code that goes on after its caller was answered: it cannot be ended, so it is counted."""

from collections.abc import Callable

from axolotl_core.layer import ToolCall

__all__ = ["Zombies"]


class Zombies:
    """What runs for nobody: coroutines that swallow their cancellation, and threads, which cannot be cancelled."""

    def __init__(self, on_change: Callable[[], object] | None = None) -> None:
        self._on_change = on_change
        self._running: dict[ToolCall, int] = {}
        """How often each was counted: a layer may have given up waiting more than once."""
        self.total = 0
        """How many there were since the start."""

    def __len__(self) -> int:
        return len(self._running)

    def add(self, call: ToolCall) -> None:
        """Count a call whose code was left behind."""
        self._running[call] = self._running.get(call, 0) + 1
        if self._running[call] == 1:
            self.total += 1
            self._tell()

    def remove(self, call: ToolCall) -> None:
        """Count it no more, as often as it was counted: its code has ended."""
        if call in self._running:
            self._running[call] -= 1
            if not self._running[call]:
                del self._running[call]
                self._tell()

    def by_name(self) -> dict[str, int]:
        """Say which features have left how much behind."""
        counts: dict[str, int] = {}
        for call in tuple(self._running):
            counts[call.spec.name] = counts.get(call.spec.name, 0) + 1
        return counts

    def _tell(self) -> None:
        if self._on_change is not None:
            self._on_change()
