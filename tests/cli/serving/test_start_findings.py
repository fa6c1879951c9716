"""Findings that a start logs, as `axolotl check` reports them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from axolotl_cli.app import app
from axolotl_cli.options import VARIABLES
from tests.support.processes import Processes

pytestmark = pytest.mark.slow

SETTINGS = """
target = "axolotl_examples.starter:Container"

[tools.calculat]
timeout_seconds = 3

[quotas.rules.slow]
rate_per_second = 1
kinds = ["prompt"]
tools = ["calculate", "calculator"]

[quotas.rules.idle]
rate_per_second = 1
kinds = ["prompt"]
"""


@pytest.mark.parametrize("words", [(), ("-t", "http", "-p", "0"), ("-t", "http", "-p", "0", "--workers", "2")])
def test_useless_settings(processes: Processes, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Settings for unknown tools, rules that match nothing and unknown variables are logged once at the start."""
    (tmp_path / "axolotl.toml").write_text(SETTINGS, encoding="utf-8")
    server = processes.start("serve", *words, directory=tmp_path, AXOLOTL_HTTP_PORT="9000")
    text = server.read_until("Rule 'idle' of quotas matches no feature of this server: check the names in it")
    assert text.count("quotas.rules.slow.tools: there is no tool, prompt or resource 'calculator'; did you mean") == 1
    assert text.count("The variable AXOLOTL_HTTP_PORT is unknown and ignored") == 1
    assert (
        text.count(
            "Setting tools.calculat is for a tool that does not exist; did you mean 'calculate'? (axolotl.toml:4)"
        )
        == 1
    )


def test_variables_of_options() -> None:
    """All variables of options are known, so that none is reported as unknown."""
    assert set(VARIABLES) == set(variables_of(get_command(app)))


def variables_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or ()
    for inner in getattr(command, "commands", {}).values():
        yield from variables_of(inner)
