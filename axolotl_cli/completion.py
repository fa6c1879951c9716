"""Shell completion of the names of tools, prompts and resources."""

import sys
from collections.abc import Callable
from typing import Any, Final

import typer

_SECONDS: Final = 15.0
"""How long a shell waits for the names of features."""
_MAX_NAMES: Final = 1000
_OPTIONS: Final = {
    "settings": "--settings",
    "env_file": "--env-file",
    "profile": "--profile",
    "url": "--url",
    "token_env": "--token-env",
    "revision": "--revision",
}

Complete = Callable[[typer.Context, str], list[tuple[str, str]]]
"""Completes a word of a command line; each completion has a description."""


def completing(kind: str, key: str = "name", *, is_first: bool = False) -> Complete:
    """Complete the names of features of one kind, which `axolotl list` finds in a process of its own.

    The first word of a command is the target, unless there is a URL.
    """

    def complete(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        if is_first and not context.params.get("url"):
            return []
        found = [(str(one[key]), _headline(one)) for one in _features(context.params).get(kind, [])]
        return [(name, help_text) for name, help_text in found if name.startswith(incomplete)][:_MAX_NAMES]

    return complete


def _features(params: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """List the features; user code may print, fail or take long, so nothing that goes wrong is shown."""
    import json
    import subprocess

    target = [] if params.get("url") else [str(params.get("target") or "-")]
    options = [word for name, option in _OPTIONS.items() if params.get(name) for word in (option, str(params[name]))]
    toolsets = [word for name in params.get("toolset") or () for word in ("--toolset", name)]
    command = [sys.executable, "-m", "axolotl_cli", "list", "--json", *target, *options, *toolsets]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
        found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    return found


def _headline(feature: dict[str, Any]) -> str:
    return next(iter(str(feature.get("description") or "").strip().splitlines()), "")
