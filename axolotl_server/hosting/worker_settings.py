"""The settings of one worker, and warnings about state that workers do not share."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from axolotl_core.errors import ConfigurationError
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.policies import AuditSettings
from axolotl_server.settings.server import ServerSettings

_PLACEHOLDER: Final = "{worker}"
_LOGS: Final = ("jsonl_path", "sqlite_path")


def for_worker(
    settings: ServerSettings, number: int, state_key: str, sessions_directory: str | None = None
) -> ServerSettings:
    """Adapt the settings to one worker: its own audit log, and the keys and the directory that all workers share.

    Raises a ConfigurationError if all workers would write the same audit log.
    """
    protocol, sessions = settings.protocol, settings.sessions
    if not protocol.state_keys:
        protocol = protocol.model_copy(update={"state_keys": (SecretStr(state_key),)})
    if sessions_directory is not None and settings.redis.url is None and sessions.directory is None:
        sessions = sessions.model_copy(update={"directory": Path(sessions_directory)})
    console = settings.console
    if console.enabled and console.token is None:
        token = sha256(f"axolotl console {state_key}".encode()).hexdigest()[:32]
        console = console.model_copy(update={"token": SecretStr(token)})
    audit = _audit_of(settings.audit, number)
    update = {"audit": audit, "protocol": protocol, "sessions": sessions, "console": console}
    return settings.model_copy(update=update)


def _audit_of(audit: AuditSettings, number: int) -> AuditSettings:
    paths = {name: path for name in _LOGS if (path := getattr(audit, name)) is not None}
    shared = [name for name, path in paths.items() if _PLACEHOLDER not in str(path)]
    if shared:
        raise ConfigurationError(
            *(
                f"Setting audit.{name} needs {_PLACEHOLDER} in its name with several workers, for example "
                f"audit-{_PLACEHOLDER}.log, because only one process can write a log"
                for name in shared
            )
        )
    own = {name: Path(str(path).replace(_PLACEHOLDER, str(number))) for name, path in paths.items()}
    return audit.model_copy(update=own) if own else audit


def worker_warnings(settings: ServerSettings, roles: Roles) -> Iterator[str]:
    """Name the state that workers do not share, although an operator may expect that they do."""
    if settings.quotas.rules and settings.redis.url is None and roles.quota_store is None:
        yield "each worker counts quotas on its own: set redis.url to share them"
    if _uses_idempotency(roles) and settings.redis.url is None and roles.result_store is None:
        yield "each worker stores results on its own: set redis.url to do work once for all workers"
    if settings.tasks.url is None and roles.task_engine is None and _runs_tasks(roles):
        yield "only the worker that started a task knows it: set tasks.url, for example to sqlite:///tasks.db"


def _runs_tasks(roles: Roles) -> bool:
    return any(tool.task_support != "forbidden" for tool in roles.tools)


def _uses_idempotency(roles: Roles) -> bool:
    return any(tool.idempotency is not None for tool in roles.tools)
