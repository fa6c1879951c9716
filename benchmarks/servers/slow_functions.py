"""A tool that blocks a thread, a tool that ignores cancellation, and a quick one."""

import asyncio
import contextlib
import time
from typing import Final

DEADLINE_SECONDS: Final = 0.5
SLOW_SECONDS: Final = 2.0
QUICK: Final = "quick"


def block() -> str:
    """Block a thread."""
    time.sleep(SLOW_SECONDS)
    return "late"


async def swallow() -> str:
    """Ignore cancellation."""
    end = time.monotonic() + SLOW_SECONDS
    while (rest := end - time.monotonic()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(rest)
    return "late"


def quick() -> str:
    """Answer at once, from a thread."""
    return QUICK


SLOW_FUNCTIONS: Final = (block, swallow, quick)
