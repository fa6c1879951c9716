"""Terminal output of `axolotl dev`: reloads and problems."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from axolotl_cli.serving.worker_log import WorkerLog
from axolotl_cli.serving.worker_process import WorkerProcess
from axolotl_cli.text import counted, enumeration, escape_controls, one_line, print_status

_MAX_NAMES: Final = 5
_ERROR: Final = typer.style("Error:", fg="red", bold=True)


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
            self._print_banner(description, counts)
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

    def _print_banner(self, description: Mapping[str, Any], counts: str) -> None:
        directories = ", ".join(os.path.relpath(one) for one in self._directories)
        print_status(f"{typer.style(description['name'], bold=True)} serves {counts} at {_link(description['url'])}")
        if description["console"] is not None:
            print_status(f"Console: {_link(description['console'])}")
        print_status(f"Watching {one_line(directories)} for changes")
        print_status("\nPress Ctrl-C to stop.")


def _link(url: str) -> str:
    return typer.style(url, fg="cyan", underline=True)
