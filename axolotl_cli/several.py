"""Serving over HTTP by several processes."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from axolotl_cli.supervisor import Supervisor
from axolotl_cli.targets import Choice
from axolotl_core.errors import ConfigurationError

__all__ = ["serve_by_workers"]


def serve_by_workers(choice: Choice, target: str | None, env_file: Path | None) -> None:
    """Have as many processes serve as the settings say, until this one is told to stop.

    Raises:
        ConfigurationError: on a system where processes cannot share a socket.
        typer.Exit: if workers could not be started, or did not end in order.
    """
    if sys.platform == "win32":
        raise ConfigurationError("Several workers need a system where processes can share a socket: say --workers 1")
    count = choice.settings.http.workers
    flags = {**choice.flags, "http": {**choice.flags.get("http", {}), "workers": count}}
    order = {
        "target": target,
        "toolsets": list(choice.toolsets),
        "flags": flags,
        "env_file": None if env_file is None else str(env_file.absolute()),
    }
    code = asyncio.run(_supervise(order, count))
    if code:
        raise typer.Exit(code)


async def _supervise(order: Mapping[str, object], count: int) -> int:
    return await Supervisor(order, count).run()
