"""New projects in an environment that has the wheel and locked packages, but cannot see the checkout."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.deploy.files import stages_of
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


START: Final = ("python -m venv .venv && source .venv/bin/activate", "python -m pip install -e '.[dev]'", "pytest")
"""How to begin with a project, which is what its README says."""


def check_scaffold() -> int:
    """Build the wheel and install it, create a project of each variant, and run its checks and its server.

    Then take the projects to a place where neither the wheel nor an environment is, and start there.
    """
    with tempfile.TemporaryDirectory() as temporary:
        _run(Path(sys.executable).parent, ["python", "-m", "hatchling", "build", "-t", "wheel", "-d", temporary], ROOT)
        [wheel] = Path(temporary).glob("*.whl")
        commands = install_locked(wheel, Path(temporary, "environment"))
        wheel.unlink()
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
        shutil.rmtree(commands.parent)
        for variant in VARIANTS:
            project = Path(temporary, "another machine", variant)
            shutil.copytree(Path(temporary, variant, "shop"), project, ignore=shutil.ignore_patterns(".*_cache"))
            start_elsewhere(project, Path(temporary, "image"))
            print(f"{variant}: a new project can be installed on another machine")
    return 0


def start_elsewhere(project: Path, image: Path) -> None:
    """Run the commands of a project: those of the README, of the workflow, and of the first stage of the image."""
    readme, workflow, dockerfile = project / "README.md", project / ".github/workflows/ci.yml", project / "Dockerfile"
    assert not readme.exists() or [*START] == _blocks(readme.read_text())[: len(START)]
    steps = re.findall("- run: (.+)", workflow.read_text()) if workflow.exists() else []
    inside = 'test "$(command -v axolotl)" = "$PWD/.venv/bin/axolotl"'
    environment = {"PIP_CONSTRAINT": str(_constraints(image.parent))}
    _run_lines([*START, inside, *steps], project, environment)
    if not dockerfile.exists():
        return
    build = image / "build"
    build.mkdir(parents=True)
    sent = re.findall(r"^!(\S+)", (project / ".dockerignore").read_text(), re.MULTILINE)
    for instruction in stages_of(dockerfile)[0]:
        if instruction.name == "COPY":
            *sources, target = instruction.text.split()
            for name in sources:
                assert name in sent, f"{name} is not sent to the builder: add it to .dockerignore"
                copy = shutil.copytree if (project / name).is_dir() else shutil.copy
                copy(project / name, build / target)
        elif instruction.name == "RUN":
            activated = f"source {shlex.quote(str(project / '.venv/bin/activate'))}"
            _run_lines([activated, instruction.text.replace("/opt/server", f"{image}/server")], build, environment)


def _blocks(readme: str) -> list[str]:
    """Give the lines of the first block of commands."""
    block = re.search(r"^```sh\n(.+?)^```", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def _constraints(directory: Path) -> Path:
    """Write the locked versions without hashes, which a project with a wheel of its own cannot have."""
    locked = (ROOT / "requirements/dev.lock").read_text()
    file = directory / "constraints.txt"
    file.write_text("\n".join(re.findall(r"^[\w.-]+==[^\\\n]+", locked, re.MULTILINE)))
    return file


def _run_lines(lines: list[str], directory: Path, more: dict[str, str]) -> None:
    """Run lines of a shell one after the other, until one fails."""
    environment = {
        **clean_environment(),
        **more,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(lines),
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        raise SystemExit(f"{lines} in {directory}\n{done.stdout}{done.stderr}")


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
