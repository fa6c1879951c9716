"""What several workers do not share, told when they start."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from axolotl_core.errors import ConfigurationError
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.policies import AuditSettings
from axolotl_server.settings.server import ServerSettings

_PLACE: Final = "{worker}"
_LOGS: Final = ("jsonl_path", "sqlite_path")


def for_worker(
    settings: ServerSettings, number: int, state_key: str, sessions_directory: str | None = None
) -> ServerSettings:
    """Adapt the settings to one worker: its own audit log, and the key and the directory that all workers share.

    Raises a ConfigurationError if all workers would write the same audit log.
    """
    protocol, sessions = settings.protocol, settings.sessions
    if not protocol.state_keys:
        protocol = protocol.model_copy(update={"state_keys": (SecretStr(state_key),)})
    if sessions_directory is not None and settings.redis.url is None and sessions.directory is None:
        sessions = sessions.model_copy(update={"directory": Path(sessions_directory)})
    audit = _audit_of(settings.audit, number)
    return settings.model_copy(update={"audit": audit, "protocol": protocol, "sessions": sessions})


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
    if settings.quotas.rules and settings.redis.url is None and roles.quota_store is None:
        yield "each worker counts for itself, so that quotas hold for each of them: set redis.url to share them"
    if _uses_idempotency(roles) and settings.redis.url is None and roles.result_store is None:
        yield "each worker knows the results of its own work alone: set redis.url to do work once"
    if any(tool.task_support != "forbidden" for tool in roles.tools):
        yield "a task is known to the worker that it began at, and to no other: serve tools that run as tasks with one"


def _uses_idempotency(roles: Roles) -> bool:
    return any(tool.idempotency is not None for tool in roles.tools)
