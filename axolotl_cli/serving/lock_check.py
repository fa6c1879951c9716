"""The check of `axolotl serve --locked`: a server starts only with the features of its lock file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from axolotl_cli.runtime import HostCheck
from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost

_MAX_CHANGES: Final = 20


def lock_check(toolsets: Sequence[str]) -> HostCheck:
    """Make the check for a server with these tool sets."""
    return partial(_require_lock, toolsets)


def _require_lock(toolsets: Sequence[str], host: ServerHost) -> None:
    """Raise a ConfigurationError with all changes if the features of a server differ from the lock file."""
    from axolotl_core.contract.lock import LOCK_FILE
    from axolotl_core.contract.lock_diff import compare_locks
    from axolotl_server.hosting.contract import lock_of, read_lock_file

    frozen, actual = read_lock_file(Path(LOCK_FILE)).select(toolsets), lock_of(host.assembly)
    if frozen.digest == actual.digest:
        return
    changes = [f"{change.description} ({change.impact})" for change in compare_locks(frozen, actual)]
    if len(changes) > _MAX_CHANGES:
        changes[_MAX_CHANGES:] = [f"… and {len(changes) - _MAX_CHANGES} more: axolotl contract diff lists all changes"]
    raise ConfigurationError(
        f"The features differ from {LOCK_FILE}, so the server does not start with --locked: run axolotl contract "
        "freeze, or serve the code that the file describes",
        *(changes or ["No caller notices the difference, but the lock file is not up to date"]),
    )
