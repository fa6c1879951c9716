"""`axolotl dev`: a supervised server that reloads when its files change."""

import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import to_builtins

from axolotl_cli.development.report import DevReport
from axolotl_cli.logs import start_logging
from axolotl_cli.serving.shared_folder import sessions_directory
from axolotl_cli.serving.supervisor import run_supervised
from axolotl_cli.serving.worker_process import WorkerOrder
from axolotl_cli.target import ChosenTarget
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_core.resources.skills import SKILL_PAGE
from axolotl_server.urls import is_loopback

_WATCHED_SUFFIXES: Final = (".py", ".toml", ".env")
_IGNORED: Final = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", "build", "dist"}
)
_DEBOUNCE_MILLISECONDS: Final = 150
_DRAIN_SECONDS: Final = 300.0
"""How long calls in replaced code may go on; only their callers wait for them."""


def serve_with_reload(chosen: ChosenTarget, watched: Sequence[Path], principal: Principal | None) -> None:
    """Serve and reload until the process is stopped."""
    early = chosen.settings
    start_logging(early.log_level, early.log)
    if not is_loopback(early.http.host):
        raise ConfigurationError(
            f"axolotl dev listens on loopback addresses only, not on {early.http.host!r}: use axolotl serve instead"
        )
    directories = project_directories(chosen.name, watched)
    http = {"drain_seconds": _DRAIN_SECONDS, "drain_delay_seconds": 0, **chosen.flags.get("http", {})}
    with sessions_directory(early) as directory:
        order = WorkerOrder(
            chosen.argument,
            chosen.toolsets,
            {**chosen.flags, "http": http},
            chosen.files_as_text,
            is_development=True,
            sessions_directory=directory,
            principal=to_builtins(principal),
        )
        run_supervised(order, 1, changes_in(directories), DevReport(directories))


def project_directories(target: str, named: Sequence[Path]) -> tuple[Path, ...]:
    """Choose the directories to watch: those that are named, otherwise the current one and that of the target."""
    file = target.rpartition(":")[0] or target
    usual = [Path.cwd(), *([Path(file).resolve().parent] if file.endswith(".py") else [])]
    directories = [path.resolve() for path in named] or usual
    missing = [f"{path} cannot be watched: it does not exist" for path in directories if not path.exists()]
    if missing:
        raise ConfigurationError(*missing)
    return tuple(
        one
        for one in dict.fromkeys(directories)
        if not any(one != other and one.is_relative_to(other) for other in directories)
    )


async def changes_in(directories: Sequence[Path]) -> AsyncIterator[tuple[str, ...]]:
    """Yield the files that changed, after a short time without further changes."""
    from watchfiles import awatch

    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # the supervisor reports changes itself
    watching = awatch(
        *directories,
        watch_filter=lambda change, path: is_relevant(path, directories),
        debounce=_DEBOUNCE_MILLISECONDS,
        step=_DEBOUNCE_MILLISECONDS // 3,
        rust_timeout=1000,
        ignore_permission_denied=True,
    )
    async for changed in watching:
        yield tuple(sorted({path for _, path in changed}))


def is_relevant(path: str, directories: Sequence[Path]) -> bool:
    """Tell whether a change of a file causes a reload."""
    file = Path(path)
    around = [folder for folder in file.parents if any(folder.is_relative_to(one) for one in directories)]
    has_skill = file.name == SKILL_PAGE or any((folder / SKILL_PAGE).exists() for folder in around)
    is_of_skill = has_skill and not file.name.startswith(".")
    if not (file.name.endswith(_WATCHED_SUFFIXES) or is_of_skill):
        return False
    inside = next((file.relative_to(one) for one in directories if file.is_relative_to(one)), file)
    return _IGNORED.isdisjoint(inside.parts[:-1]) and not any(part.endswith("_cache") for part in inside.parts[:-1])
