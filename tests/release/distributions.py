"""The sdist and the wheel: built twice from the same sources, compared, and searched for what does not belong."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from tests.release.sources import ROOT, commit_time

PACKAGES: Final = {path.name for path in ROOT.glob("axolotl_*") if path.is_dir()}
IN_SDIST: Final = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
    "tests/conftest.py",
)


def write_sbom(output: Path) -> Path:
    """Write a software bill of materials of everything that the lock file for production installs."""
    path = output.resolve() / "axolotl-mcp.cdx.json"
    command = ["cyclonedx-py", "requirements", "requirements/runtime.lock", "--pyproject", "pyproject.toml"]
    _run([_tool(command[0]), *command[1:], "--output-reproducible", "-o", str(path)])
    return path


def build_twice(output: Path) -> tuple[Path, Path]:
    """Build the wheel and the sdist twice, and fail if a byte differs."""
    with tempfile.TemporaryDirectory() as temporary:
        first, second = (_build(Path(temporary, name)) for name in ("first", "second"))
        if first != second:
            different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
            raise SystemExit(f"Two builds of the same sources differ: {', '.join(different)}")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(Path(temporary, "first"), output)
    return _only(output, "*.whl"), _only(output, "*.tar.gz")


def check_contents(wheel: Path, sdist: Path) -> None:
    """Fail if the wheel has anything but the packages, or the sdist lacks what a distribution needs to test it."""
    _run([_tool("check-wheel-contents"), "--ignore", "W002", "--toplevel", ",".join(sorted(PACKAGES)), str(wheel)])
    findings = unexpected_files(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        inside = {
            PurePosixPath(name).relative_to(PurePosixPath(name).parts[0]).as_posix() for name in archive.getnames()
        }
    findings += [f"{name} is missing in the sdist" for name in IN_SDIST if name not in inside]
    if findings:
        raise SystemExit("\n".join(findings))


def unexpected_files(names: list[str]) -> list[str]:
    """Name the files of a wheel that do not belong there."""
    findings = []
    for name in names:
        top, _, rest = name.partition("/")
        is_described = top.endswith(".dist-info")
        if not is_described and (top not in PACKAGES or (_is_test(rest) and "templates/" not in rest)):
            findings.append(f"{name} does not belong in the wheel")
    return findings


def _is_test(path: str) -> bool:
    return any(part in {"tests", "benchmarks", "docs"} or part.startswith("test_") for part in path.split("/"))


def _build(output: Path) -> dict[str, str]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time()}
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output)], environment)
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in output.iterdir()}


def _only(directory: Path, pattern: str) -> Path:
    (path,) = directory.glob(pattern)
    return path


def _tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
