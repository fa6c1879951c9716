"""Serving over HTTP."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.runtime import run, serving, settle
from axolotl_cli.serving.address import listen, url_of
from axolotl_cli.serving.banner import invite
from axolotl_cli.target import resolve_target
from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost
from axolotl_server.http.assembly import prepare
from axolotl_server.http_server.serve import serve_http
from axolotl_server.sessions.sessions import load_stores


def serve_over_http(
    target: str | None, toolsets: Sequence[str] | None, flags: Mapping[str, Any], env_file: Path | None = None
) -> None:
    """Serve any number of clients at a URL.

    Raises:
        ConfigurationError: if the server cannot start, or cannot have its address.
    """
    choice = resolve_target(target, toolsets, flags, env_file)
    early = choice.settings
    start_logging(early.log_level, early.log)
    if early.http.workers > 1:
        from axolotl_cli.serving.supervisor import serve_by_workers

        serve_by_workers(choice, target, env_file)
    else:
        load_stores(early.sessions)
        run(_serve(choice.load()))


async def _serve(host: ServerHost) -> None:
    async with serving(host, lambda settings: settings.http.drain_delay_seconds + settings.http.drain_seconds):
        set_log_level(host.settings.log_level, host.settings.log)
        if host.audit is not None:
            host.audit.trail.open()
        prepare(host)
        _check_workers(host)
        settle()
        with listen(host.settings.http) as listener:
            invite(host, url_of(host.settings.http, listener))
            await serve_http(host, listener)
    logging.getLogger("axolotl").info("stopped")


def _check_workers(host: ServerHost) -> None:
    """Refuse a number of workers that was said too late: the container is started by each of them."""
    if host.settings.http.workers > 1:
        raise ConfigurationError(
            "The container cannot say how many workers start it: say http.workers with --workers, the environment or "
            "the settings file"
        )
