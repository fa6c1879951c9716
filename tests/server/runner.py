"""A server over stdio as a process: `python -m tests.server.runner path/to/file.py:Container [settings as JSON]`."""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from axolotl_server import ServerHost
from axolotl_server.loading import load_container
from axolotl_server.shutdown import StopSignal
from axolotl_server.transports.pipes import StandardStreams, claim_standard_streams
from axolotl_server.transports.stdio import serve_stdio


def run_stdio(target: str, settings: Mapping[str, Any] | None = None) -> int:
    """Serve until the client leaves."""
    streams = claim_standard_streams()
    asyncio.run(_serve(target, settings, streams))
    return 0


async def _serve(target: str, settings: Mapping[str, Any] | None, streams: StandardStreams) -> None:
    async with ServerHost(load_container(target), flags=settings) as host:
        stop = StopSignal()
        with stop.listening():
            await serve_stdio(host.handler, host.settings, streams, stop)


if __name__ == "__main__":
    sys.exit(run_stdio(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else None))
