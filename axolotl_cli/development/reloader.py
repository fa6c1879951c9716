"""`axolotl dev`: a supervised server that reloads when its files change."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from axolotl_cli.development.file_watch import changes_in, project_directories, require_watchfiles
from axolotl_cli.development.report import DevReport
from axolotl_cli.logs import start_logging
from axolotl_cli.options import FileOptions
from axolotl_cli.serving.shared_folder import sessions_directory
from axolotl_cli.serving.supervisor import Supervisor
from axolotl_cli.serving.worker_process import WorkerOrder
from axolotl_cli.target import resolve_target
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_server.urls import is_loopback

_DRAIN_SECONDS: Final = 300.0
"""How long calls in replaced code may go on; only their callers wait for them."""


def serve_with_reload(
    target: str | None,
    toolsets: Sequence[str] | None,
    flags: Mapping[str, Any],
    files: FileOptions,
    watched: Sequence[Path],
    *,
    principal: Principal | None = None,
) -> None:
    """Serve and reload until the process is stopped."""
    require_watchfiles()
    watched = [path.absolute() for path in watched]
    chosen = resolve_target(target, toolsets, flags, files, is_dev=True)
    early = chosen.settings
    start_logging(early.log_level, early.log)
    if not is_loopback(early.http.host):
        raise ConfigurationError(
            f"axolotl dev listens on loopback addresses only, not on {early.http.host!r}: use axolotl serve instead"
        )
    directories = project_directories(chosen.name, watched)
    http = {"drain_seconds": _DRAIN_SECONDS, "drain_delay_seconds": 0, **flags.get("http", {})}
    with sessions_directory(early) as directory:
        order = WorkerOrder(
            chosen.argument,
            chosen.toolsets,
            {**flags, "http": http},
            chosen.files_as_text,
            is_development=True,
            sessions_directory=directory,
            principal=None if principal is None else _as_json(principal),
        )
        code = asyncio.run(_supervise(order, directories))
    if code:
        raise typer.Exit(code)


def _as_json(principal: Principal) -> dict[str, Any]:
    lists = {"scopes": sorted(principal.scopes), "roles": sorted(principal.roles)}
    return {"subject": principal.subject, "tenant": principal.tenant, **lists, "claims": dict(principal.claims)}


async def _supervise(order: WorkerOrder, directories: Sequence[Path]) -> int:
    supervisor = Supervisor(order, 1, changes_in(directories), DevReport(directories))
    return await supervisor.run()
