"""New projects in an environment that has the wheel and locked packages, but cannot see the checkout."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.release.installed import clean_environment
from tests.release.sources import ROOT

VARIANTS: Final = {"full": [], "minimal": ["--minimal"]}
CHECKS: Final = (
    "pytest -q -p no:cacheprovider",
    "mypy --strict .",
    "ruff check .",
    "ruff format --check .",
    "axolotl check --strict",
    "axolotl contract check",
    "axolotl budget --max-tokens 4000",
)
"""What a new project passes."""

CALLS: Final = {"full": ("track_order", {"number": 7}, "sent"), "minimal": ("greet", {"name": "Ada"}, "Hello, Ada!")}
CLIENT: Final = """
import asyncio, json, sys
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

async def main(tool, arguments, expected):
    server = StdioServerParameters(command="axolotl", args=["serve", "--profile", "dev"])
    async with Client(stdio_client(server)) as client:
        result = await client.call_tool(tool, json.loads(arguments))
    assert expected in result.content[0].text, result

asyncio.run(main(*sys.argv[1:]))
"""
"""The official client, which starts the server as a person or a program would."""


def check_scaffold() -> int:
    """Build the wheel and install it, create a project of each variant, and run its checks and its server."""
    with tempfile.TemporaryDirectory() as temporary:
        _run(Path(sys.executable).parent, ["python", "-m", "hatchling", "build", "-t", "wheel", "-d", temporary], ROOT)
        [wheel] = Path(temporary).glob("*.whl")
        commands = install_locked(wheel, Path(temporary, "environment"))
        for variant, options in VARIANTS.items():
            directory = Path(temporary, variant)
            directory.mkdir()
            _run(commands, ["axolotl", "new", "shop", *options], directory)
            project = directory / "shop"
            for check in CHECKS:
                _run(commands, check.split(), project)
            tool, arguments, expected = CALLS[variant]
            _run(commands, ["python", "-c", CLIENT, tool, json.dumps(arguments), expected], project)
            print(f"{variant}: a new project passes {len(CHECKS)} checks, and answers the official client")
    return 0


def install_locked(wheel: Path, directory: Path) -> Path:
    """Install the locked packages, whose hashes are checked, and the wheel; give the folder of the commands."""
    own = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--python", str(directory)]
    for command in (
        [sys.executable, "-m", "venv", "--without-pip", str(directory)],
        [*own, "--require-hashes", "-r", str(ROOT / "requirements/dev.lock")],
        [*own, "--no-deps", "--no-index", str(wheel.resolve())],
    ):
        _run(directory / "bin", command, ROOT)
    found = _run(directory / "bin", ["python", "-c", "import axolotl_core; print(axolotl_core.__file__)"], directory)
    if not found.startswith(str(directory)):
        raise SystemExit(f"the environment imports the checkout: {found}")
    return directory / "bin"


def _run(commands: Path, words: list[str], directory: Path) -> str:
    """Run a command of the environment, which sees no variable of this one."""
    own = clean_environment()
    environment = {**own, "PATH": f"{commands}{os.pathsep}{own['PATH']}"}
    executable = commands / words[0]
    done = subprocess.run(
        [str(executable) if executable.exists() else words[0], *words[1:]],
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} in {directory}\n{done.stdout}{done.stderr}")
    return done.stdout
