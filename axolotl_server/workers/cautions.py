"""What several workers do not share, told when they start."""

from collections.abc import Iterator

from axolotl_server.http.sessionless import NO_SESSIONS
from axolotl_server.roles import Roles
from axolotl_server.settings import ServerSettings

__all__ = ["cautions"]


def cautions(settings: ServerSettings, roles: Roles) -> Iterator[str]:
    """Name what each worker has for itself although somebody may expect that it is shared."""
    if settings.sessions.redis_url is None:
        yield f"handshakes are refused. {NO_SESSIONS}"
    if settings.quotas.rules and settings.quotas.redis_url is None and roles.quota_store is None:
        yield "each worker counts for itself, so that quotas hold for each of them: set quotas.redis_url to share them"
    if _uses_idempotency(roles) and settings.idempotency.redis_url is None and roles.result_store is None:
        yield "each worker knows the results of its own work alone: set idempotency.redis_url to do work once"
    if any(tool.task_support != "forbidden" for tool in roles.tools):
        yield "a task is known to the worker that it began at, and to no other: serve tools that run as tasks with one"


def _uses_idempotency(roles: Roles) -> bool:
    return any(tool.idempotency is not None for tool in roles.tools)
