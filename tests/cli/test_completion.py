"""Shell completion, with the scripts that shells run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import environment_with

pytestmark = pytest.mark.slow

TOOLS = '''
from dependency_injector import containers, providers
from axolotl_core import prompt, resource, tool

@tool
async def get_order(number: int) -> str:
    """Get an order. It must exist."""
    return "order"

@tool
async def get_offer() -> str:
    """Get an offer."""
    return "offer"

@prompt
async def apology(name: str) -> str:
    """Apologize."""
    return "sorry"

@resource("terms://all")
async def terms() -> str:
    """The terms."""
    return "terms"

print("user code may print")

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(get_order), providers.Object(get_offer))
    prompts = providers.List(providers.Object(apology))
    resources = providers.List(providers.Object(terms))
'''


def complete(directory: Path, line: str, shell: str = "bash") -> tuple[int, list[str], str]:
    """Complete the last word of a line as a shell does, and return the exit code, the completions and stderr."""
    words = (
        {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))} if shell == "bash" else {"_TYPER_COMPLETE_ARGS": line}
    )
    done = subprocess.run(
        [Path(sys.executable).with_name("axolotl")],
        cwd=directory,
        env=environment_with(_AXOLOTL_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_FISH_ACTION="get-args", **words),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a container."""
    (tmp_path / "shop.py").write_text(TOOLS, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("axolotl call shop.py get_or", ["get_order"]),
        ("axolotl call shop.py ", ["get_order", "get_offer"]),
        ("axolotl prompt shop.py ", ["apology"]),
        ("axolotl read shop.py te", ["terms://all"]),
        ("axolotl ins", ["inspect", "install"]),
        ("axolotl call sh", []),
    ],
)
def test_names(project: Path, line: str, completions: list[str]) -> None:
    """Commands and the names of features are completed; for targets, the shell completes files."""
    code, found, stderr = complete(project, line)
    assert (code, [one for one in found if one], stderr) == (0, completions, "")


def test_target_of_the_project(project: Path) -> None:
    """The default target comes from axolotl.toml."""
    (project / "axolotl.toml").write_text('target = "shop.py"\n', encoding="utf-8")
    assert complete(project, "axolotl call - get_of")[1] == ["get_offer"]


@pytest.mark.parametrize(
    ("shell", "shown"),
    [("zsh", '"get_order":"Get an order. It must exist."'), ("fish", "get_order\tGet an order. It must exist.")],
)
def test_descriptions(project: Path, shell: str, shown: str) -> None:
    """Shells that show descriptions get them."""
    code, found, stderr = complete(project, "axolotl call shop.py get_or", shell)
    assert (code, stderr) == (0, "")
    assert shown in "\n".join(found)


def test_broken_code_is_silent(project: Path) -> None:
    """A container that does not load has no completions, and no errors disturb the command line."""
    (project / "broken.py").write_text("import nowhere\n", encoding="utf-8")
    code, found, stderr = complete(project, "axolotl call broken.py ")
    assert (code, [one for one in found if one], stderr) == (0, [], "")


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
