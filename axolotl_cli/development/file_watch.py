"""Which files make a project, and when one of them changes."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from axolotl_core.errors import ConfigurationError

if TYPE_CHECKING:
    from watchfiles import Change

_NAMES: Final = frozenset({".env"})
_ENDINGS: Final = (".py", ".toml", ".env")
_IGNORED: Final = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", "build", "dist"}
)
_DEBOUNCE_MILLISECONDS: Final = 150


def require_watchfiles() -> None:
    """Make sure that files can be watched.

    Raises:
        ConfigurationError: if the extra is not installed.
    """
    try:
        import watchfiles  # noqa: F401 only whether it is there matters here
    except ImportError:
        raise ConfigurationError("axolotl dev needs the extra dev: pip install 'axolotl-mcp[dev]'") from None


def project_directories(target: str, named: Sequence[Path]) -> tuple[Path, ...]:
    """Choose what is watched: the directories that were named, else the current one and that of the target's file.

    Raises:
        ConfigurationError: if one is not there.
    """
    place = target.rpartition(":")[0] or target
    usual = [Path.cwd(), *([Path(place).resolve().parent] if place.endswith(".py") else [])]
    wanted = [path.resolve() for path in named] or usual
    missing = [f"There is no file or directory {path} to watch" for path in wanted if not path.exists()]
    if missing:
        raise ConfigurationError(*missing)
    return tuple(
        one for one in dict.fromkeys(wanted) if not any(one != two and one.is_relative_to(two) for two in wanted)
    )


async def changes_in(directories: Sequence[Path]) -> AsyncIterator[tuple[str, ...]]:
    """Give the files that changed, each time that some did and nothing has followed for a moment."""
    from watchfiles import awatch

    watching = awatch(
        *directories,
        watch_filter=lambda change, path: _matters(change, path, directories),
        debounce=_DEBOUNCE_MILLISECONDS,
        step=_DEBOUNCE_MILLISECONDS // 3,
        rust_timeout=1000,
        ignore_permission_denied=True,
    )
    async for changed in watching:
        yield tuple(sorted({path for _, path in changed}))


def _matters(change: "Change", path: str, directories: Sequence[Path]) -> bool:
    file = Path(path)
    if not (file.name in _NAMES or file.name.endswith(_ENDINGS)):
        return False
    inside = next((file.relative_to(one) for one in directories if file.is_relative_to(one)), file)
    return _IGNORED.isdisjoint(inside.parts[:-1]) and not any(part.endswith("_cache") for part in inside.parts[:-1])
