"""The settings of one worker, and warnings about state that workers do not share."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr

from axolotl_core.errors import ConfigurationError
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.policies import WORKER
from axolotl_server.settings.server import ServerSettings


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
    audit = settings.audit
    if audit.jsonl_path is not None and WORKER not in str(audit.jsonl_path):
        raise ConfigurationError(
            f"Setting audit.jsonl_path needs {WORKER} in its name with several workers, for example "
            f"audit-{WORKER}.log, because only one process can write a log"
        )
    update = {"audit": audit.of_worker(str(number)), "protocol": protocol, "sessions": sessions}
    return settings.model_copy(update=update)


def for_lone_process(
    settings: ServerSettings, kind: str, hold: Callable[[Callable[[], object]], object]
) -> ServerSettings:
    """Adapt the settings to a process without a supervisor: `{worker}` becomes its kind and the lowest free number.

    The number is taken until the function that `hold` is given was called, or the process has ended.
    """
    if WORKER not in str(settings.audit.jsonl_path):
        return settings
    from axolotl_server.audit.log_files import LogLock  # the system may have no locks

    number = 0
    while True:
        number += 1
        audit = settings.audit.of_worker(f"{kind}-{number}")
        log = audit.jsonl_path
        assert log is not None
        with suppress(OSError):  # opening the log says why it cannot be used
            try:
                hold(LogLock(log.with_name(f"{log.name}.slot")).release)
            except ConfigurationError:
                continue
        return settings.model_copy(update={"audit": audit})


def named_logs(settings: ServerSettings) -> list[Path]:
    """List the audit logs of the workers that serve clients."""
    workers = map(str, range(1, settings.http.workers + 1))
    paths = (settings.audit.of_worker(worker).jsonl_path for worker in workers)
    return list(dict.fromkeys(path for path in paths if path is not None))


def worker_warnings(settings: ServerSettings, roles: Roles) -> Iterator[str]:
    """Name the state that workers do not share, although an operator may expect that they do."""
    if settings.quotas.rules and settings.redis.url is None and roles.quota_store is None:
        yield "each worker counts quotas on its own: set redis.url to share them"
    has_idempotency = any(tool.idempotency is not None for tool in roles.tools)
    if has_idempotency and settings.redis.url is None and roles.result_store is None:
        yield "each worker stores results on its own: set redis.url to do work once for all workers"
    for one in (*roles.bundled, *roles.extensions):
        yield from one.worker_warnings()
