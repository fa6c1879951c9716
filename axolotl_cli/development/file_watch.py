"""The files of a project, watched for changes."""

import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.skills import SKILL_PAGE

if TYPE_CHECKING:
    from watchfiles import Change

_WATCHED_NAMES: Final = frozenset({".env"})
_WATCHED_SUFFIXES: Final = (".py", ".toml", ".env")
_IGNORED: Final = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", "build", "dist"}
)
_DEBOUNCE_MILLISECONDS: Final = 150


def require_watchfiles() -> None:
    """Check that the extra `dev` is installed."""
    try:
        import watchfiles  # noqa: F401 - imported only to see whether it is installed
    except ImportError:
        raise ConfigurationError.missing_extra("axolotl dev", "dev") from None


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
        watch_filter=lambda change, path: _is_relevant(change, path, directories),
        debounce=_DEBOUNCE_MILLISECONDS,
        step=_DEBOUNCE_MILLISECONDS // 3,
        rust_timeout=1000,
        ignore_permission_denied=True,
    )
    async for changed in watching:
        yield tuple(sorted({path for _, path in changed}))


def _is_relevant(change: "Change", path: str, directories: Sequence[Path]) -> bool:
    file = Path(path)
    if not (file.name in _WATCHED_NAMES or file.name.endswith(_WATCHED_SUFFIXES) or _is_in_skill(file, directories)):
        return False
    inside = next((file.relative_to(one) for one in directories if file.is_relative_to(one)), file)
    return _IGNORED.isdisjoint(inside.parts[:-1]) and not any(part.endswith("_cache") for part in inside.parts[:-1])


def _is_in_skill(file: Path, directories: Sequence[Path]) -> bool:
    """Tell whether a file belongs to a skill: it, or a folder around it, has a SKILL.md."""
    around = [folder for folder in file.parents if any(folder.is_relative_to(one) for one in directories)]
    named = file.name == SKILL_PAGE or any((folder / SKILL_PAGE).exists() for folder in around)
    return named and not file.name.startswith(".")
