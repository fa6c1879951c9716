"""`axolotl worker`: a process that runs stored tasks and serves no clients."""

from typing import Annotated, Any

import typer

from axolotl_cli.options import FileOptions, LogLevel, Target, ToolSets
from axolotl_cli.serving.task_worker import run_tasks
from axolotl_cli.target import resolve_target


def worker(
    target: Target = None,
    *,
    concurrency: Annotated[int | None, typer.Option(min=1, help="How many tasks run at once.")] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Run only tasks of these tools; separate names with commas.")
    ] = None,
    health: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Answer GET /livez and /readyz on this address.")
    ] = None,
    toolset: ToolSets = None,
    log_level: LogLevel = None,
    files: FileOptions,
) -> None:
    """Run the stored tasks of a container until a signal stops it.

    Running tasks then have http.drain_seconds to finish. After that, tasks that may restart go back to the queue.
    """
    flags: dict[str, Any] = {} if log_level is None else {"log_level": log_level.value}
    if concurrency is not None:
        flags["tasks"] = {"concurrency": concurrency}
    names = None if tools is None else frozenset(name.strip() for name in tools.split(",") if name.strip())
    run_tasks(resolve_target(target, toolset, flags, files), tools=names, health=health)
