"""The wheel in an environment of its own, which cannot see the checkout: what the README shows must work there."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.release.sources import ROOT, version

READY_WITHIN_SECONDS: Final = 60


def install(wheel: Path, directory: Path, *, extras: str = "") -> Path:
    """Install the wheel, and the packages it requires in their locked versions; give the folder of the commands."""
    python = directory / "bin" / "python"
    _run([sys.executable, "-m", "venv", "--without-pip", str(directory)])
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--python", str(python)]
    _run([*uv, "--constraint", str(ROOT / "requirements" / "dev.lock"), f"{wheel.resolve()}{extras}"])
    return directory / "bin"


def check_installation(wheel: Path) -> None:
    """Run the commands of the README with the installed wheel only."""
    with tempfile.TemporaryDirectory() as temporary:
        commands = install(wheel, Path(temporary, "environment"), extras="[test,examples]")
        work = Path(temporary, "work")
        work.mkdir()
        work.joinpath("greeter.py").write_bytes((ROOT / "docs/examples/greeter.py").read_bytes())
        axolotl = str(commands / "axolotl")
        _expect(_run([axolotl, "--version"], work), f"axolotl {version()}\n")
        _expect(_run([axolotl, "check", "greeter.py"], work), "greeter.py: 1 tool, no problems\n")
        _expect(_run([axolotl, "call", "greeter.py", "greet", "name=Ada"], work), "Hello, Ada!\n")
        _check_demo(axolotl, work)
        _check_tutorial(commands, work)


def _check_tutorial(commands: Path, work: Path) -> None:
    """Run the tests and checks of the tutorial's project."""
    project = work / "shop"
    shutil.copytree(ROOT / "docs/examples/tutorial/shop", project, ignore=shutil.ignore_patterns("*.db", "__pycache__"))
    _run([str(commands / "python"), "-m", "pytest", "-q"], project)
    _run([str(commands / "axolotl"), "check", "--strict"], project)
    _run([str(commands / "axolotl"), "contract", "check"], project)


def _check_demo(axolotl: str, work: Path) -> None:
    """Serve the example tools, and ask the running server for its health."""
    command = [axolotl, "serve", "--demo", "--transport", "http", "--port", "0"]
    with subprocess.Popen(command, cwd=work, env=clean_environment(), stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            lines: list[str] = []
            while not lines or "http://127.0.0.1:" not in lines[-1]:
                line = server.stderr.readline()
                if not line:
                    raise SystemExit(f"`{' '.join(command)}` does not start:\n{''.join(lines)}")
                lines.append(line)
            url = next(word for word in lines[-1].split() if word.startswith("http://"))
            _run([axolotl, "health", "--url", url.removesuffix("/mcp")], work)
        finally:
            server.terminate()
        server.communicate(timeout=READY_WITHIN_SECONDS)
    if server.returncode:
        raise SystemExit(f"the server ended with {server.returncode} after SIGTERM")


def _expect(output: str, expected: str) -> None:
    if output != expected:
        raise SystemExit(f"expected {expected!r}, got {output!r}")


def _run(command: list[str], directory: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=directory, env=clean_environment(), check=False, capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def clean_environment() -> dict[str, str]:
    """Give the variables of this process without those that lead to the checkout."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "AXOLOTL"))
    }
