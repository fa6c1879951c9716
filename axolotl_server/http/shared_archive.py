"""The events of a session that several processes serve."""

from collections.abc import Callable

from axolotl_core.event_store import IEventStore
from axolotl_server.http.resumption import STREAM_END, Archive

__all__ = ["SharedArchive"]


class SharedArchive(Archive):
    """Tells whenever something was kept, and notes the end of streams, so that another process can follow them."""

    def __init__(self, store: IEventStore, session: str, on_kept: Callable[[str, bytes], object]) -> None:
        super().__init__(store, session)
        self._on_kept: Callable[[str, bytes], object] | None = on_kept

    async def keep(self, stream: str, message: bytes) -> str | None:
        """Keep a message, and tell of it."""
        event_id = await super().keep(stream, message)
        if self._on_kept is not None:
            self._on_kept(stream, message)
        return event_id

    def fall_silent(self) -> None:
        """Tell of nothing any more."""
        self._on_kept = None

    async def finish(self, stream: str) -> None:
        """Note that nothing more is said on a stream."""
        await self.keep(stream, STREAM_END)
