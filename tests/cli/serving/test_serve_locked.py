"""`axolotl serve --locked`: a server starts only with the features of its lock file."""

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.contract.test_contract_command import Shop
from tests.support.processes import Processes


@pytest.fixture
def shop(cli: CommandLine) -> Shop:
    """Write a project with a lock file to the directory of the commands."""
    made = Shop(cli)
    assert cli("contract", "freeze").code == 0
    return made


@pytest.mark.parametrize(
    "words",
    [(), ("--transport", "http", "--port", "0"), ("--transport", "http", "--port", "0", "--workers", "2")],
    ids=["stdio", "http", "workers"],
)
def test_a_server_with_other_features_does_not_start(
    shop: Shop, processes: Processes, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """It exits with 2 before it serves, and names the changes."""
    shop.change(number="str")
    code, stdout, stderr = processes.run("-C", str(tmp_path), "serve", "--locked", *words)
    assert (code, stdout) == (2, "")
    assert "The features differ from axolotl.lock.json" in stderr
    assert 'tool track: other values are allowed: type "integer" → "string" (breaking)' in stderr


def test_a_server_with_the_same_features_starts(shop: Shop, processes: Processes, tmp_path: Path) -> None:
    """With some tool sets, only these are compared; without a lock file, nothing starts."""
    assert processes.run("-C", str(tmp_path), "serve", "--locked")[0] == 0
    assert processes.run("-C", str(tmp_path), "serve", "--locked", "--toolset", "read")[0] == 0
    (tmp_path / "axolotl.lock.json").unlink()
    code, _, stderr = processes.run("-C", str(tmp_path), "serve", "--locked")
    assert code == 2
    assert "axolotl.lock.json does not exist" in stderr
