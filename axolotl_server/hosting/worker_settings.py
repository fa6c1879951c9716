"""What several workers do not share, told when they start."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from axolotl_core.errors import ConfigurationError
from axolotl_server.hosting.roles import Roles
from axolotl_server.sessions.sessions import NO_SESSIONS
from axolotl_server.settings.policies import AuditSettings
from axolotl_server.settings.server import ServerSettings

_PLACE: Final = "{worker}"
_LOGS: Final = ("jsonl_path", "sqlite_path")


def for_worker(settings: ServerSettings, number: int, state_key: str) -> ServerSettings:
    """Give a worker an audit log of its own, and the key that all workers seal with where the settings have none.

    Raises:
        ConfigurationError: if all workers would have to write the same log.
    """
    protocol = settings.protocol
    if not protocol.state_keys:
        protocol = protocol.model_copy(update={"state_keys": (SecretStr(state_key),)})
    return settings.model_copy(update={"audit": _audit_of(settings.audit, number), "protocol": protocol})


def _audit_of(audit: AuditSettings, number: int) -> AuditSettings:
    paths = {name: path for name in _LOGS if (path := getattr(audit, name)) is not None}
    shared = [name for name, path in paths.items() if _PLACE not in str(path)]
    if shared:
        raise ConfigurationError(
            *(
                f"Setting audit.{name} needs {_PLACE} in its name with several workers, as in audit-{_PLACE}.log: a "
                "log is written by one process"
                for name in shared
            )
        )
    own = {name: Path(str(path).replace(_PLACE, str(number))) for name, path in paths.items()}
    return audit.model_copy(update=own) if own else audit


def cautions(settings: ServerSettings, roles: Roles) -> Iterator[str]:
    """Name what each worker has for itself although somebody may expect that it is shared."""
    if settings.redis.url is None:
        yield f"handshakes are refused. {NO_SESSIONS}"
    if settings.quotas.rules and settings.redis.url is None and roles.quota_store is None:
        yield "each worker counts for itself, so that quotas hold for each of them: set redis.url to share them"
    if _uses_idempotency(roles) and settings.redis.url is None and roles.result_store is None:
        yield "each worker knows the results of its own work alone: set redis.url to do work once"
    if any(tool.task_support != "forbidden" for tool in roles.tools):
        yield "a task is known to the worker that it began at, and to no other: serve tools that run as tasks with one"


def _uses_idempotency(roles: Roles) -> bool:
    return any(tool.idempotency is not None for tool in roles.tools)
