"""`axolotl contract diff --against URL`: the code compared with a running server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.contract.test_contract_command import Shop
from tests.support.clients.http_process import http_process


@pytest.fixture
def shop(cli: CommandLine) -> Shop:
    """Write a project without a policy to the directory of the commands."""
    made = Shop(cli)
    cli.write("axolotl.toml", 'target = "shop.py"\n')
    return made


@pytest.fixture
def url(shop: Shop, tmp_path: Path) -> Iterator[str]:
    """Serve the project as it is at first."""
    with http_process(str(tmp_path / "shop.py"), "--settings", str(tmp_path / "axolotl.toml")) as served:
        yield served


@pytest.mark.slow
def test_what_lists_show_is_compared(cli: CommandLine, shop: Shop, url: str) -> None:
    """Schemas and texts are compared; limits, which no list shows, are not."""
    assert cli("contract", "diff", "--against", url).code == 0
    shop.change(timeout=10)
    assert cli("contract", "diff", "--against", url).code == 0
    shop.change(number="str", description="Follow an order.")
    answer = cli("contract", "diff", "--against", url)
    assert answer.code == 1
    assert answer.stdout.splitlines()[-1] == f"1 breaking change, 1 risky change against {url}"


def test_a_server_that_does_not_answer(cli: CommandLine, shop: Shop) -> None:
    """The exit code is 3, and 2 for a token that is not there or a URL that cannot be one."""
    answer = cli("contract", "diff", "--against", "http://127.0.0.1:9/mcp")
    assert (answer.code, answer.stdout) == (3, "")
    assert "http://127.0.0.1:9" in answer.stderr
    answer = cli("contract", "diff", "--against", "http://127.0.0.1:9/mcp", "--token-env", "NO_TOKEN")
    assert answer.code == 2
    assert "NO_TOKEN of --token-env is not set" in answer.stderr
    assert cli("contract", "diff", "--against", "http://").code == 2
