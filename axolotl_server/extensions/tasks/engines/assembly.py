"""Assembly of the engine that the settings choose; its library is imported only if it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from axolotl_core.errors import ConfigurationError
from axolotl_core.task_engine import ITaskEngine
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from axolotl_server.extensions.tasks.engines.stored_run import ITaskDatabase

_FORMS: Final = "sqlite:///tasks.db, sqlite:////var/lib/app/tasks.db or postgresql://host/database"


def make_engine(settings: ServerSettings) -> ITaskEngine:
    """Make the engine that the settings choose."""
    if settings.tasks.url is None:
        from axolotl_server.extensions.tasks.engines.memory_engine import MemoryTaskEngine

        return MemoryTaskEngine(settings)
    from axolotl_server.extensions.tasks.engines.stored_engine import StoredTaskEngine

    return StoredTaskEngine(make_database(settings), settings)


def make_database(settings: ServerSettings) -> "ITaskDatabase":
    """Make the database that the settings name."""
    return database_maker(settings)()


def database_maker(settings: ServerSettings) -> "Callable[[], ITaskDatabase]":
    """Check `tasks.url` without touching the database, and import its library.

    Raises:
        ConfigurationError: if the URL is not valid, or the library or the keys are missing.
    """
    assert settings.tasks.url is not None
    url = settings.tasks.url.get_secret_value()
    scheme = urlsplit(url).scheme
    keys = [key.get_secret_value() for key in settings.protocol.state_keys]
    if scheme == "sqlite" and url.startswith("sqlite:///"):
        return _sqlite(settings, Path(unquote(url.removeprefix("sqlite:///"))), keys)
    if scheme in ("postgresql", "postgres"):
        return _postgres(settings, url, keys)
    raise ConfigurationError(f"Setting tasks.url: {_problem(scheme)}; write {_FORMS}")


def _problem(scheme: str) -> str:
    if scheme == "sqlite":
        return "sqlite: needs three slashes before a relative path, and four before an absolute one"
    return f"unknown scheme {scheme!r}" if scheme else "the scheme is missing"


def _sqlite(settings: ServerSettings, path: Path, keys: list[str]) -> "Callable[[], ITaskDatabase]":
    from axolotl_server.extensions.tasks.engines.sqlite_tasks import SqliteTasks
    from axolotl_server.extensions.tasks.engines.task_sealing import TaskSealer, key_beside

    def make() -> "ITaskDatabase":
        if not path.parent.is_dir():
            raise ConfigurationError(f"Setting tasks.url: the directory {path.parent} does not exist: create it")
        sealer = TaskSealer(keys or [key_beside(path.with_name(f"{path.name}.key"))])
        return SqliteTasks(path, settings, sealer)

    return make


def _postgres(settings: ServerSettings, url: str, keys: list[str]) -> "Callable[[], ITaskDatabase]":
    try:
        from axolotl_server.extensions.tasks.engines.postgres_tasks import PostgresTasks
    except ImportError:
        raise ConfigurationError.missing_extra("Setting tasks.url", "postgres") from None
    from axolotl_server.extensions.tasks.engines.task_sealing import TaskSealer

    if not keys:
        raise ConfigurationError(
            "Setting tasks.url: tasks in Postgres are encrypted: set protocol.state_keys, to the same keys on all "
            "servers and workers"
        )
    return lambda: PostgresTasks(url, settings, TaskSealer(keys))
