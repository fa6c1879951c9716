"""Shell completion, with the scripts that shells run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import environment_with

pytestmark = pytest.mark.slow


def complete(directory: Path, line: str) -> tuple[int, list[str], str]:
    """Complete the last word of a line as a shell does, and return the exit code, the completions and stderr."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = subprocess.run(
        [Path(sys.executable).with_name("axolotl")],
        cwd=directory,
        env=environment_with(_AXOLOTL_COMPLETE="complete_bash", **words),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("line", "completions"),
    [("axolotl ins", ["inspect", "install"]), ("axolotl policy ", ["explain"]), ("axolotl call sh", [])],
)
def test_commands(tmp_path: Path, line: str, completions: list[str]) -> None:
    """Commands are completed; for targets, the shell completes files."""
    code, found, stderr = complete(tmp_path, line)
    assert (code, [one for one in found if one], stderr) == (0, completions, "")


def test_installation(tmp_path: Path) -> None:
    """`--install-completion` changes the files of the current shell, and `--show-completion` prints the script."""
    programs = Path(sys.executable).parent
    environment = environment_with(HOME=str(tmp_path), PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    script = "axolotl --show-completion && axolotl --install-completion; true"
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "complete -o default -F _axolotl_completion axolotl" in done.stdout
    installed = (tmp_path / ".bash_completions" / "axolotl.sh").read_text(encoding="utf-8")
    assert installed in done.stdout
    assert str(tmp_path / ".bash_completions" / "axolotl.sh") in (tmp_path / ".bashrc").read_text(encoding="utf-8")
