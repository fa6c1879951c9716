"""The supervisor of `axolotl dev`, from the command line to its end."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from axolotl_cli.dev_report import Report
from axolotl_cli.dev_supervisor import DevSupervisor
from axolotl_cli.dev_watching import changes_in, project_directories, require_watchfiles
from axolotl_cli.targets import choose
from axolotl_core.errors import ConfigurationError
from axolotl_server.identity.urls import is_loopback

__all__ = ["serve_while_developing"]

_DRAIN_SECONDS: Final = 300.0
"""How long calls of code that was replaced may go on; nobody waits for them but their callers."""


def serve_while_developing(
    target: str | None,
    toolsets: Sequence[str] | None,
    flags: Mapping[str, Any],
    env_file: Path | None,
    watched: Sequence[Path],
) -> None:
    """Serve, and take over changes until the process is told to stop.

    Raises:
        ConfigurationError: if the extra is missing, the settings are wrong, or others could reach the server.
    """
    require_watchfiles()
    choice = choose(target, toolsets, flags, env_file)
    host = choice.settings.http.host
    if not is_loopback(host):
        raise ConfigurationError(f"axolotl dev serves this machine alone, not {host!r}: use axolotl serve for others")
    order = {
        "target": target,
        "toolsets": list(choice.toolsets),
        "env_file": None if env_file is None else str(env_file),
    }
    directories = project_directories(choice.target, watched)
    with TemporaryDirectory(prefix="axolotl-dev-") as shared:
        asyncio.run(_supervise({**order, "flags": _lasting(flags, shared)}, directories))


def _lasting(flags: Mapping[str, Any], shared: str) -> dict[str, Any]:
    """Let calls and sessions outlive the process that they began in."""
    http = {"drain_seconds": _DRAIN_SECONDS, "drain_delay_seconds": 0, **flags.get("http", {})}
    return {**flags, "http": http, "sessions": {"directory": shared}}


async def _supervise(order: Mapping[str, Any], directories: Sequence[Path]) -> None:
    supervisor = DevSupervisor(order, Report(directories))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, supervisor.stop)
    await supervisor.run(changes_in(directories))
