"""The command line of `axolotl serve`, and its reading without Typer, which would take memory."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from axolotl_cli.arguments import FileOptions, Level, Transport

_LEFT_TO_TYPER: Final = ("AXOLOTL_LOCKED", "AXOLOTL_TOOLSETS")
"""Variables with a syntax of their own."""


class ServeArguments(NamedTuple):
    """What the command line says about a server."""

    target: str | None = None
    transport: Transport = Transport.STDIO
    host: str | None = None
    port: int | None = None
    path: str | None = None
    workers: int | None = None
    toolset: Sequence[str] | None = None
    log_level: Level | None = None
    env_file: Path | None = None
    settings: Path | None = None
    profile: str | None = None
    locked: bool = False
    demo: bool = False

    @property
    def mistake(self) -> str | None:
        """What is wrong with the combination of options, if anything is."""
        if self.demo and self.target is not None:
            return "--demo serves example tools instead of a target: leave one of them out"
        if self.transport is Transport.STDIO and self._http:
            names = ", ".join(f"--{name}" for name in self._http)
            return f"{names} has no effect over stdio: add --transport http"
        return None

    @property
    def _http(self) -> Mapping[str, Any]:
        options = (("host", self.host), ("port", self.port), ("path", self.path), ("workers", self.workers))
        return {key: value for key, value in options if value is not None}

    def serve(self) -> None:
        """Serve until the server is stopped."""
        from axolotl_cli.target import STARTER

        if self.demo and find_spec("pathspec") is None:
            from axolotl_core.errors import ConfigurationError

            raise ConfigurationError.missing_extra("--demo", "examples")
        target = STARTER if self.demo else self.target
        flags: dict[str, Any] = {"http": self._http} if self._http else {}
        if self.log_level is not None:
            flags["log_level"] = self.log_level.value
        files = FileOptions(self.env_file, self.settings, self.profile)
        if self.transport is Transport.STDIO:
            from axolotl_cli.serving.stdio import serve_over_stdio as serve
        else:
            from axolotl_cli.serving.http import serve_over_http as serve
        serve(target, self.toolset, flags, files, is_locked=self.locked)


def _number(text: str, least: int, most: float = inf) -> int:
    if text.isascii() and text.isdigit() and least <= int(text) <= most:
        return int(text)
    raise ValueError(text)


_OPTIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "--transport": Transport,
    "--host": str,
    "--port": partial(_number, least=0, most=65535),
    "--path": str,
    "--workers": partial(_number, least=1),
    "--toolset": str,
    "--log-level": Level,
    "--env-file": Path,
    "--settings": Path,
    "--profile": str,
}
"""The options with values, and functions that raise ValueError if a value needs an explanation."""
_SHORT: Final = {"-t": "--transport", "-p": "--port", "-w": "--workers", "-l": "--log-level"}
_FLAGS: Final = ("--locked", "--demo")


def read_simple(words: Sequence[str], variables: Mapping[str, str]) -> ServeArguments | None:
    """Read the words after `serve`; returns None for all that Typer has to read, such as mistakes and `--help`."""
    if any(name in _LEFT_TO_TYPER or name.endswith("_COMPLETE") for name in variables):
        return None
    found: dict[str, Any] = {}
    try:
        rest = iter(words)
        for word in rest:
            if word in _FLAGS:
                found[word.removeprefix("--")] = True
            elif word.startswith("-"):
                _add_option(found, _SHORT.get(word, word), next(rest))
            elif "target" in found:
                return None
            else:
                found["target"] = word
    except (KeyError, StopIteration, ValueError):
        return None
    arguments = ServeArguments(**{"target": variables.get("AXOLOTL_TARGET") or None, **found})
    return None if arguments.mistake else arguments


def _add_option(found: dict[str, Any], option: str, text: str) -> None:
    if text.startswith("-"):
        raise ValueError(text)
    name, value = option.removeprefix("--").replace("-", "_"), _OPTIONS[option](text)
    found[name] = [*found.get(name, ()), value] if option == "--toolset" else value
