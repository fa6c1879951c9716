"""Serving over HTTP."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from axolotl_cli.logs import start_logging
from axolotl_cli.runtime import run, serving
from axolotl_cli.serving.address import listen, url_of
from axolotl_cli.serving.banner import print_banner
from axolotl_cli.serving.start_findings import require_lock, warn_about_settings, warn_about_variables
from axolotl_cli.target import ChosenTarget
from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost
from axolotl_server.hosting.assembly import load_redis
from axolotl_server.http.assembly import prepare
from axolotl_server.http.server.serve import serve_http
from axolotl_server.settings.server import ServerSettings


def serve_over_http(resolve: Callable[[], ChosenTarget], *, is_locked: bool = False) -> None:
    """Serve any number of clients at a URL."""
    chosen = resolve()
    early = chosen.settings
    start_logging(early.log_level, early.log)
    warn_about_variables(chosen)
    if early.http.workers > 1:
        from axolotl_cli.serving.supervisor import serve_by_workers

        serve_by_workers(chosen, is_locked=is_locked)
    else:
        load_redis(early.redis)
        run(_serve(chosen.load(), chosen.toolsets if is_locked else None))


@asynccontextmanager
async def started(host: ServerHost, locked: Sequence[str] | None) -> AsyncIterator[None]:
    """Start a server and check that it may be served; stop it after the block. Locked tool sets have not changed."""
    async with serving(host, drain_seconds):
        prepare(host)
        if locked is not None:
            require_lock(locked, host)
        yield


def drain_seconds(settings: ServerSettings) -> float:
    """Return how long calls may go on after a stop is requested."""
    return settings.http.drain_delay_seconds + settings.http.drain_seconds


async def _serve(host: ServerHost, locked: Sequence[str] | None) -> None:
    async with started(host, locked):
        if host.settings.http.workers > 1:
            raise ConfigurationError(
                "The container cannot set http.workers, because every worker starts it: set it with --workers, in the "
                "environment or in the settings file"
            )
        warn_about_settings(host)
        with listen(host.settings.http) as listener:
            print_banner(host, url_of(host.settings.http, listener))
            await serve_http(host, listener)
    logging.getLogger("axolotl").info("stopped")
