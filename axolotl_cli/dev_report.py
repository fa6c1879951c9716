"""What `axolotl dev` tells the person at the terminal."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import typer

from axolotl_cli.counts import counted, enumeration
from axolotl_cli.lines import escape_controls, one_line

__all__ = ["Report"]

_MOST_NAMED: Final = 5
_ERROR: Final = typer.style("Error:", fg="red", bold=True)


class Report:
    """Writes to the standard error stream."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._offer: set[str] | None = None

    def serves(self, said: Mapping[str, Any], seconds: float) -> None:
        """Say where the server is, or later what became different."""
        before, self._offer = self._offer, set(said["offer"])
        counts = enumeration(counted(said["counts"]))
        if before is None:
            self._greet(said, counts)
            return
        what = enumeration(
            [*_named("new", self._offer - before), *_named("gone", before - self._offer)] or ["the same offer"]
        )
        _say(typer.style("reloaded", fg="green", bold=True) + f" in {seconds:.1f} s: {counts}, {one_line(what)}")
        if said["moved"]:
            _say("The address changed in the settings: start axolotl dev again to take it")

    def changed(self, files: Sequence[str]) -> None:
        """Say which files changed."""
        names = [os.path.relpath(file) for file in files]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        _say(typer.style(f"changed: {one_line(', '.join(names[:_MOST_NAMED]))}{more}", dim=True))

    def failed(self, problem: str, *, serving: bool) -> None:
        """Say why the newest code does not start."""
        _say(f"{_ERROR} {escape_controls(problem)}")
        _say(
            "The code from before goes on serving; mend it and save."
            if serving
            else "Mend it and save: I start again then."
        )

    def ended(self, how: str) -> None:
        """Say that the server ended without being told to."""
        _say(f"{_ERROR} The server ended by itself, {how}. Save a file to start it again.")

    def _greet(self, said: Mapping[str, Any], counts: str) -> None:
        url = urlsplit(said["url"])
        console = f"{url.scheme}://{url.netloc}/console"
        watched = ", ".join(os.path.relpath(one) for one in self._directories)
        _say(f"{typer.style(said['name'], bold=True)} serves {counts} at {_link(said['url'])}")
        _say(f"Look at it: {_link(console)}")
        _say(f"Changes in {one_line(watched)} are taken over as they are saved.")
        _say("\nPress Ctrl-C to stop.")


def _named(word: str, names: set[str]) -> Iterator[str]:
    shown = sorted(names)[:_MOST_NAMED]
    more = [f"{len(names) - len(shown)} more"] if len(names) > len(shown) else []
    if shown:
        yield f"{word}: {', '.join([*shown, *more])}"


def _link(url: str) -> str:
    return typer.style(url, fg="cyan", underline=True)


def _say(text: str) -> None:
    typer.echo(text, err=True)
