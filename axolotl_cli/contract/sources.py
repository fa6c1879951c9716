"""Sources of contracts: the code of a target, lock files, revisions in git, and running servers."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Final

import typer

from axolotl_cli.calling.running_server import use_server
from axolotl_cli.exit import ExitCode
from axolotl_cli.logs import start_logging
from axolotl_cli.options import RemoteOptions
from axolotl_cli.runtime import with_host
from axolotl_cli.target import ChosenTarget
from axolotl_cli.text import report
from axolotl_core.contract.lock import LOCK_FILE, Lock, make_lock, read_lock
from axolotl_core.errors import ConfigurationError
from axolotl_server.client.client import Client
from axolotl_server.client.replies import RemoteError
from axolotl_server.host import ServerHost
from axolotl_server.hosting.contract import lock_of, read_lock_file

_GIT_SECONDS: Final = 60.0
_SERVER_SECONDS: Final = 60.0
"""How long reading the lists of a server may take."""
_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@{}^~+-]*")
"""Names, abbreviated hashes and expressions such as `HEAD~2` or `main@{1}`; nothing that git reads as an option."""


def freeze_code(target: ChosenTarget) -> Lock:
    """Start the server of a target and freeze all its features."""

    async def work(host: ServerHost) -> Lock:
        return lock_of(host.assembly)

    return with_host(target, work)


def read_baseline(source: str, directory: Path, token_variable: str | None = None) -> Lock:
    """Read the contract to compare with: a file, the lock file of a revision (`git:REV`), or a server (its URL).

    A relative file is looked up in `directory`, and the lock file of a revision in the current one.
    """
    if source.startswith("git:"):
        return _lock_of_revision(source.removeprefix("git:"))
    if source.startswith(("http://", "https://")):
        return _lock_of_server(source, token_variable)
    return read_lock_file(directory / source)


def _lock_of_revision(revision: str) -> Lock:
    if not _REVISION.fullmatch(revision):
        raise ConfigurationError(f"git:{revision} does not name a revision: use a branch, a tag or a hash")
    command = ["git", "cat-file", "blob", f"{revision}:./{LOCK_FILE}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_SECONDS, check=False)
    except FileNotFoundError:
        raise ConfigurationError("git is not installed, but --against git:… needs it") from None
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"git did not answer within {_GIT_SECONDS:g} seconds") from None
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise ConfigurationError(f"git has no {LOCK_FILE} at {revision}: {reason}")
    return read_lock(done.stdout, f"{LOCK_FILE} at {revision}")


def _lock_of_server(url: str, token_variable: str | None) -> Lock:
    """Read the lists of a server.

    Raises ConfigurationError if something on the command line is not usable, and ends the command if the server does
    not answer.
    """

    async def read(client: Client) -> Lock:
        async with asyncio.timeout(_SERVER_SECONDS):
            lists = {kind: [(one, None) for one in found] for kind, found in (await client.list_all()).items()}
        return make_lock(lists["tools"], lists["prompts"], [*lists["resources"], *lists["templates"]], lists["skills"])

    start_logging("warning")
    try:
        return use_server(RemoteOptions(url, token_variable), read)
    except (RemoteError, TimeoutError) as error:
        reason = (
            f"it did not answer within {_SERVER_SECONDS:g} seconds" if isinstance(error, TimeoutError) else str(error)
        )
        report(f"The contract of {url} cannot be read: {reason}")
        raise typer.Exit(ExitCode.UNREACHABLE) from None
