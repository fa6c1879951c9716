"""The settings of a server, as one of several workers has to take them."""

from pathlib import Path
from typing import Final

from pydantic import SecretStr

from axolotl_core.errors import ConfigurationError
from axolotl_server.audit.settings import AuditSettings
from axolotl_server.settings import ServerSettings

__all__ = ["for_worker"]

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
