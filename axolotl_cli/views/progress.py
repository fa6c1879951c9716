"""The progress of a call: one bar at a terminal, and nothing elsewhere."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from axolotl_cli.text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress


class CallProgress:
    """Shows progress and log messages on stderr while a call runs. The bar is made with the first report."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._bar: Progress | None = None

    def report(self, params: Mapping[str, Any]) -> None:
        """Show the params of a progress notification."""
        if not self._is_shown:
            return
        done, total = params.get("progress"), params.get("total")
        if not isinstance(done, int | float):
            return
        total = total if isinstance(total, int | float) else None
        count = plain_number(done) if total is None else f"{plain_number(done)}/{plain_number(total)}"
        text = one_line(str(params.get("message") or ""))
        if self._bar is None:
            self._bar = _start(total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total, count=count, text=text)

    def log(self, params: Mapping[str, Any]) -> None:
        """Print the params of a log message, above the bar."""
        data, logger = params.get("data"), f" {params['logger']}" if "logger" in params else ""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        with self.paused():
            typer.secho(one_line(f"{params.get('level')}{logger}: {text}"), dim=True, err=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bar away while something else is printed, or asked."""
        if self._bar is None:
            yield
            return
        live = self._bar.live
        live.transient = True
        self._bar.stop()
        try:
            yield
        finally:
            live.transient = False
            self._bar.start()

    def stop(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def plain_number(value: float) -> str:
    """Format a number without an exponent; whole numbers have no fraction."""
    if not isfinite(value):
        return str(value)
    return str(int(value)) if value == int(value) else f"{value:.2f}".rstrip("0").rstrip(".")


def _start(total: float | None) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        console=Console(stderr=True, highlight=False),
        redirect_stdout=False,  # the result is printed to a stdout that others redirect, too
        redirect_stderr=False,
    )
    bar.start()
    bar.add_task("", total=total, count="", text="")
    return bar
