"""Assembly of the engine that the settings choose; its library is imported only if it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from axolotl_core.errors import ConfigurationError
from axolotl_core.task_engine import ITaskEngine
from axolotl_server.settings.server import ServerSettings
from axolotl_server.task_engines.memory_engine import MemoryTaskEngine

if TYPE_CHECKING:
    from axolotl_server.task_engines.stored_engine import ITaskDatabase

_FORMS: Final = "sqlite:///tasks.db, sqlite:////var/lib/app/tasks.db or postgresql://host/database"


def make_engine(settings: ServerSettings) -> ITaskEngine:
    """Make the engine that the settings choose."""
    if settings.tasks.url is None:
        return MemoryTaskEngine(settings.tasks)
    database = make_database(settings)
    from axolotl_server.task_engines.stored_engine import StoredTaskEngine

    return StoredTaskEngine(database, settings.tasks)


def make_database(settings: ServerSettings) -> "ITaskDatabase":
    """Make the database that the settings name; its library is imported only now."""
    assert settings.tasks.url is not None
    url = settings.tasks.url.get_secret_value()
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        return _sqlite(settings, Path(unquote(url.removeprefix("sqlite:///"))))
    if scheme in ("postgresql", "postgres"):
        return _postgres(settings, url)
    raise ConfigurationError(f"Setting tasks.url: unknown scheme {scheme!r}; write {_FORMS}")


def _sqlite(settings: ServerSettings, path: Path) -> "ITaskDatabase":
    try:
        from axolotl_server.task_engines.sqlite_tasks import SqliteTasks
    except ImportError:
        raise ConfigurationError.missing_extra("Setting tasks.url", "tasks") from None
    from axolotl_server.task_engines.task_sealing import TaskSealer, key_beside

    keys = [key.get_secret_value() for key in settings.protocol.state_keys]
    return SqliteTasks(path, settings.tasks, TaskSealer(keys or [key_beside(path.with_name(f"{path.name}.key"))]))


def _postgres(settings: ServerSettings, url: str) -> "ITaskDatabase":
    try:
        from axolotl_server.task_engines.postgres_tasks import PostgresTasks
    except ImportError:
        raise ConfigurationError.missing_extra("Setting tasks.url", "postgres") from None
    from axolotl_server.task_engines.task_sealing import TaskSealer

    keys = [key.get_secret_value() for key in settings.protocol.state_keys]
    if not keys:
        raise ConfigurationError("Setting tasks.url: tasks in Postgres need protocol.state_keys, to encrypt them")
    return PostgresTasks(url, settings.tasks, TaskSealer(keys))
