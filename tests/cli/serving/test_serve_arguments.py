"""Command lines of `axolotl serve` that are read without Typer: they mean what Typer says, or Typer reads them."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from axolotl_cli.app import app
from axolotl_cli.serving.serve_arguments import ServeArguments, read_simple

SIMPLE = (
    "",
    "shop:Container",
    "--transport stdio shop:Container",
    "shop:Container -t http -p 8000",
    "shop:Container --transport http --host 0.0.0.0 --port 0 --path /mcp --workers 4",
    "-t http -w 2 -l debug --log-level warning shop:Container",
    "--toolset a --toolset b,c --settings x.toml --env-file .env --profile p --locked shop.py:Container",
    "--demo",
)
LEFT_TO_TYPER = (
    "--help",
    "-h",
    "a b",
    "--demo shop:Container",
    "--port 8000",
    "-t http -p 65536",
    "-t http -p -1",
    "-t http -w 0",
    "-t tcp",
    "-t",
    "-t http -p8000",
    "--transport=http",
    "--log-level DEBUG",
    "--host -t",
    "--unknown x",
    "-- shop:Container",
    "-",
)
WORDS = st.one_of(
    st.sampled_from(sorted({word for line in (*SIMPLE, *LEFT_TO_TYPER) for word in line.split()})),
    st.sampled_from(["007", "٣", "1_0", " 1", "", "HTTP", "--no-demo", "--lock", "-tp", "--demo=1"]),
)


def parsed_by_typer(words: list[str], variables: dict[str, str]) -> ServeArguments | None:
    """Return what Typer gives to the command, or None if it refuses the words."""
    command: Any = get_command(app)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        try:
            with command.commands["serve"].make_context("serve", list(words)) as context:
                arguments = ServeArguments(**context.params)
        except Exception as error:
            if not hasattr(error, "exit_code"):
                raise
            return None
    return None if arguments.mistake else arguments._replace(toolset=list(arguments.toolset or ()) or None)


@pytest.mark.parametrize("line", SIMPLE)
def test_simple_command_lines(line: str) -> None:
    """Plain options with valid values are read without Typer, and mean the same."""
    found = read_simple(line.split(), {})
    assert found is not None
    assert found == parsed_by_typer(line.split(), {})


@pytest.mark.parametrize("line", LEFT_TO_TYPER)
def test_other_command_lines(line: str) -> None:
    """Help, mistakes and other ways to write an option are left to Typer."""
    assert read_simple(line.split(), {}) is None


@given(st.lists(WORDS, max_size=6), st.sampled_from([{}, {"AXOLOTL_TARGET": "shop:Container"}, {"AXOLOTL_TARGET": ""}]))
def test_any_command_line(words: list[str], variables: dict[str, str]) -> None:
    """Whatever is read without Typer is what Typer would have read."""
    found = read_simple(words, variables)
    assert found is None or found == parsed_by_typer(words, variables)


@pytest.mark.parametrize("name", ["AXOLOTL_LOCKED", "AXOLOTL_TOOLSETS", "_AXOLOTL_COMPLETE"])
def test_variables(name: str) -> None:
    """Variables that Typer interprets are left to it."""
    assert read_simple(["shop:Container"], {name: "x"}) is None


def test_all_options_are_known() -> None:
    """Every option of the command can be read without Typer, so that a new one is not forgotten."""
    command: Any = get_command(app)
    names = {name for param in command.commands["serve"].params for name in param.opts if param.name != "target"}
    values = {"--transport": "http", "-t": "http", "--log-level": "debug", "-l": "debug"}
    for name in names - {"--help", "-h", "--demo", "--locked"}:
        words = ["--transport", "http", name, values.get(name, "1")]
        assert read_simple(words, {}) == parsed_by_typer(words, {}) is not None


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_failures_are_reported_alike(transport: str) -> None:
    """A command that fails prints the same and has the same exit code, whether Typer has read its words or not."""
    simple = ["serve", "nowhere:Container", "--transport", transport]
    outputs = [_run(simple), _run([*simple[:-2], f"--transport={transport}"])]
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == 2
    assert "Module 'nowhere' not found" in outputs[0][2]


def _run(words: list[str]) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "axolotl_cli", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr
