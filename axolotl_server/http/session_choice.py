"""Which sessions a server has: its own, those that it shares, or none."""

from axolotl_core.errors import ConfigurationError
from axolotl_core.event_store import IEventStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.sessions import Sessions
from axolotl_server.settings import ServerSettings, SessionSettings
from axolotl_server.stores.memory_events import MemoryEventStore

__all__ = ["choose_sessions", "load_stores"]


def choose_sessions(handler: DefaultHandler, settings: ServerSettings, given: IEventStore | None = None) -> Sessions:
    """Make what the settings ask for; sessions that are shared need a running loop.

    Raises:
        ConfigurationError: if Redis is wanted but cannot be used.
    """
    if settings.sessions.redis_url is not None:
        return _shared(handler, settings.sessions, settings.sessions.redis_url.get_secret_value(), given)
    if settings.sessions.directory is not None:
        from axolotl_server.http.local_sessions import local_sessions

        return local_sessions(handler, settings.sessions, settings.sessions.directory, given)
    if settings.http.workers > 1:
        from axolotl_server.http.sessionless import Sessionless

        return Sessionless(handler, settings.sessions, None)
    return Sessions(handler, settings.sessions, _events(settings.sessions, given))


def load_stores(settings: SessionSettings) -> None:
    """Import what shared sessions need; that takes a while, during which no loop should run.

    Raises:
        ConfigurationError: if the extra is missing.
    """
    if settings.redis_url is None:
        return
    try:
        import axolotl_server.stores.redis_events
        import axolotl_server.stores.redis_sessions  # noqa: F401 - it is the import that is wanted
    except ImportError:
        raise ConfigurationError(
            "Setting sessions.redis_url needs the extra redis: pip install 'axolotl-mcp[redis]'"
        ) from None


def _events(settings: SessionSettings, given: IEventStore | None) -> IEventStore | None:
    """Choose where events are kept, if they are."""
    if not settings.resumable:
        return None
    return MemoryEventStore(settings.max_events, settings.max_event_bytes) if given is None else given


def _shared(handler: DefaultHandler, settings: SessionSettings, url: str, given: IEventStore | None) -> Sessions:
    load_stores(settings)
    from axolotl_server.http.shared_sessions import SharedSessions
    from axolotl_server.stores.redis_events import RedisEventStore
    from axolotl_server.stores.redis_sessions import RedisSessionStore

    store = RedisSessionStore(
        url,
        maximum=settings.maximum,
        idle_seconds=settings.idle_seconds,
        prefix=settings.redis_prefix,
        timeout_seconds=settings.store_timeout_seconds,
        max_connections=settings.redis_connections,
    )
    if not settings.resumable or given is not None:
        return SharedSessions(handler, settings, given if settings.resumable else None, store)
    events = RedisEventStore(
        url,
        max_events=settings.max_events,
        max_bytes=settings.max_event_bytes,
        idle_seconds=settings.idle_seconds,
        prefix=settings.redis_prefix,
        timeout_seconds=settings.store_timeout_seconds,
        max_connections=settings.redis_connections,
    )
    return SharedSessions(handler, settings, events, store, events.close)
