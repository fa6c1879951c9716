"""Terminal output of `axolotl dev`: reloads, problems and calls; its worker describes the server for it."""

import logging
import os
import socket
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from axolotl_cli.logs import reduced_traceback
from axolotl_cli.serving.address import url_of
from axolotl_cli.serving.console import console_of
from axolotl_cli.serving.supervisor import WorkerLog
from axolotl_cli.serving.worker_process import WorkerProcess
from axolotl_cli.text import counted, counts_in, enumeration, escape_controls, one_line, print_status
from axolotl_core.errors import ConfigurationError
from axolotl_server.extensions.console.journal import CallRecord
from axolotl_server.host import ServerHost
from axolotl_server.observation.tracebacks import user_frames

_MAX_NAMES: Final = 5
_MAX_CHARACTERS: Final = 8000
_ERROR: Final = typer.style("Error:", fg="red", bold=True)
_CONSOLE_CLIENT: Final = "axolotl-console"
_COLORS: Final = {"ok": "green", "input_required": "cyan", "cancelled": "yellow", "timeout": "yellow"}
_OUTCOME_WIDTH: Final = 17
_NAME_WIDTH: Final = 24

_log: Final = logging.getLogger("axolotl")


class DevReport(WorkerLog):
    """Prints what happens to the code and its server."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._has_served = False

    def started(self, worker: WorkerProcess) -> None:
        """Print nothing: an older worker may still answer requests."""

    def serving(self, workers: Sequence[WorkerProcess], seconds: float, *, is_reload: bool) -> None:
        description = workers[0].description
        counts = enumeration(counted(description["counts"]))
        if not self._has_served:
            self._has_served = True
            name, url = typer.style(description["name"], bold=True), _link(description["url"])
            print_status(f"{name} serves {counts} at {url}")
            if description["console"] is not None:
                print_status(f"Console: {_link(description['console'])}")
            directories = ", ".join(os.path.relpath(one) for one in self._directories)
            print_status(f"Watching {one_line(directories)} for changes")
            print_status("\nPress Ctrl-C to stop.")
            return
        print_status(typer.style("reloaded", fg="green", bold=True) + f" in {seconds:.1f} s: {counts}")
        if description["address_changed"]:
            print_status("The address in the settings changed: restart axolotl dev to use it")

    def reloading(self, files: Sequence[str]) -> None:
        names = [os.path.relpath(file) for file in files]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        print_status(typer.style(f"changed: {one_line(', '.join(names[:_MAX_NAMES]))}{more}", dim=True))

    def failed(self, worker: WorkerProcess, *, is_reload: bool, is_serving: bool) -> None:
        print_status(f"{_ERROR} {escape_controls(worker.problem)}")
        if worker.is_hopeless and not is_serving:
            return
        print_status(
            "The previous code keeps serving. Fix the error and save."
            if is_serving
            else "Fix the error and save to start the server."
        )

    def given_up(self) -> None:
        """Print nothing: the problem has been printed."""

    def ended(self, worker: WorkerProcess) -> None:
        print_status(f"{_ERROR} The server {worker.ending}. Save a file to start it again.")


def _link(url: str) -> str:
    return typer.style(url, fg="cyan", underline=True)


def describe_server(host: ServerHost, listener: socket.socket) -> dict[str, Any]:
    """Describe a server: name, URL and number of features."""
    url, console = url_of(host.settings.http, listener), console_of(host)
    return {
        "name": host.settings.server.name,
        "url": url,
        "console": None if console is None else console.link(url),
        "counts": counts_in(host),
    }


def explain(error: BaseException) -> str:
    """Describe an error, with a traceback if it comes from the user's code."""
    if not isinstance(error, ConfigurationError):
        return reduced_traceback(error).strip()[:_MAX_CHARACTERS]
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    is_users = bool(user_frames(traceback.extract_tb(root.__traceback__))) or isinstance(root, SyntaxError)
    shown = ["", reduced_traceback(root)] if is_users and not isinstance(root, ConfigurationError) else []
    return "\n".join([*error.findings, *shown]).strip()[:_MAX_CHARACTERS]


def print_call(record: CallRecord, log_format: str) -> None:
    """Print a request that has ended, or log it as JSON; the console's own page sends some that are left out."""
    is_of_page = record.kind is None and (record.client or "").startswith(_CONSOLE_CLIENT)
    if record.outcome is None or is_of_page:
        return
    if log_format != "json":
        print_status(format_call(record))
        return
    what = record.name if record.kind is not None else record.method
    caller = f" for {who}" if (who := _who(record)) else ""
    arguments = "" if record.arguments is None else f" {bytes(record.arguments).decode()}"
    _log.info("%s: %s in %s%s%s", what, record.outcome, _duration(record.seconds or 0.0), caller, arguments)


def format_call(record: CallRecord) -> str:
    """Format a request: time, outcome, name, duration and caller."""
    when = time.strftime("%H:%M:%S", time.localtime(record.began))
    outcome = typer.style(f"{record.outcome:<{_OUTCOME_WIDTH}}", fg=_COLORS.get(record.outcome or "", "red"))
    what = one_line(record.name or "") if record.kind is not None else one_line(record.method)
    took = f"{_duration(record.seconds or 0.0):>9}"
    emphasis = {"dim": True} if record.kind is None else {"bold": True}
    name = typer.style(f"{what:<{_NAME_WIDTH}}", **emphasis)
    line = f"{typer.style(when, dim=True)} {outcome} {name} {took}  {typer.style(_who(record), dim=True)}"
    if record.arguments is not None:
        line = f"{line} {one_line(bytes(record.arguments).decode())}"
    return line.rstrip()


def _who(record: CallRecord) -> str:
    person = record.subject if record.tenant is None else f"{record.subject} of {record.tenant}"
    known = (record.client, None if person == "anonymous" else person, record.reason, record.rule)
    return one_line(", ".join(filter(None, known)))


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
