"""The end of telemetry: what was not sent yet is sent, but nobody waits for that for ever."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

__all__ = ["flush"]

_log = logging.getLogger("axolotl")


async def flush(acts: Sequence[Callable[[], object]], seconds: float) -> None:
    """Do what blocks until something is sent, all in threads of their own, and wait for them so long at most.

    The threads do not keep the process alive: an exporter tries again for minutes where nobody listens.
    """
    done = asyncio.gather(*map(_in_thread, acts), return_exceptions=True)
    try:
        async with asyncio.timeout(seconds):
            for outcome in await done:
                if isinstance(outcome, Exception):
                    _log.warning("telemetry could not be flushed: %s", type(outcome).__name__)
    except TimeoutError:
        _log.warning("telemetry was not sent within %g seconds; what is left of it is lost", seconds)


def _in_thread(act: Callable[[], object]) -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def work() -> None:
        error: Exception | None = None
        try:
            act()
        except Exception as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, error)
        except RuntimeError:  # the loop has ended before
            return

    threading.Thread(target=work, name="axolotl-flush", daemon=True).start()
    return done
