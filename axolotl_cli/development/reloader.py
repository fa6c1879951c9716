"""`axolotl dev`: a supervised server that reloads when its files change."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from axolotl_cli.development.file_watch import changes_in, project_directories, require_watchfiles
from axolotl_cli.development.report import DevReport
from axolotl_cli.logs import start_logging
from axolotl_cli.serving.supervisor import Supervisor
from axolotl_cli.serving.worker_process import WorkerOrder
from axolotl_cli.target import resolve_target
from axolotl_core.errors import ConfigurationError
from axolotl_server.urls import is_loopback

_DRAIN_SECONDS: Final = 300.0
"""How long calls in replaced code may go on; only their callers wait for them."""


def serve_with_reload(
    target: str | None,
    toolsets: Sequence[str] | None,
    flags: Mapping[str, Any],
    env_file: Path | None,
    watched: Sequence[Path],
) -> None:
    """Serve and reload until the process is stopped."""
    require_watchfiles()
    chosen = resolve_target(target, toolsets, flags, env_file)
    early = chosen.settings
    start_logging(early.log_level, early.log)
    if not is_loopback(early.http.host):
        raise ConfigurationError(
            f"axolotl dev serves this machine alone, not {early.http.host!r}: use axolotl serve for others"
        )
    directories = project_directories(chosen.name, watched)
    with TemporaryDirectory(prefix="axolotl-dev-") as shared:
        order = WorkerOrder(
            target,
            chosen.toolsets,
            _with_lasting_sessions(flags, shared),
            None if env_file is None else str(env_file.absolute()),
            is_development=True,
        )
        asyncio.run(_supervise(order, directories))


def _with_lasting_sessions(flags: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """Let calls and sessions outlive the process that they began in."""
    http = {"drain_seconds": _DRAIN_SECONDS, "drain_delay_seconds": 0, **flags.get("http", {})}
    return {**flags, "http": http, "sessions": {"directory": directory}}


async def _supervise(order: WorkerOrder, directories: Sequence[Path]) -> None:
    supervisor = Supervisor(order, 1, changes_in(directories), DevReport(directories), restart=False)
    await supervisor.run()
