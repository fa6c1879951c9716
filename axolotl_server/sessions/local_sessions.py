"""Sessions that the processes of one machine share."""

from pathlib import Path

from axolotl_core.errors import ConfigurationError
from axolotl_core.sessions import IEventStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.sessions.sessions import Sessions
from axolotl_server.sessions.shared_sessions import SharedSessions
from axolotl_server.settings.transports import SessionSettings
from axolotl_server.stores.sqlite_sessions import SqliteEventStore, SqliteSessionStore


def local_sessions(
    handler: DefaultHandler, settings: SessionSettings, directory: Path, given: IEventStore | None
) -> Sessions:
    """Share sessions, with the messages that are kept of them, in a directory; nobody else may read there.

    Raises:
        ConfigurationError: if the directory cannot be used.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"Setting sessions.directory: {directory} cannot be used: {error.strerror}") from error
    store = SqliteSessionStore(directory, maximum=settings.maximum, idle_seconds=settings.idle_seconds)
    if not settings.resumable or given is not None:
        return SharedSessions(handler, settings, given if settings.resumable else None, store)
    events = SqliteEventStore(
        directory / "events.sqlite", max_events=settings.max_events, max_bytes=settings.max_event_bytes
    )
    return SharedSessions(handler, settings, events, store, events.close)
