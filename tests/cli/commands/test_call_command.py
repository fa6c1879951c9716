"""`axolotl call`."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, CommandLine
from tests.support.processes import Processes

SAMPLE = "tests.support.containers.command_containers:Container"


def call(cli: CommandLine, *words: str) -> Answer:
    return cli("call", SAMPLE, *words)


def test_text(cli: CommandLine) -> None:
    """Text is printed as it is."""
    answer = call(cli, "greet", "name=Ann")
    assert (answer.code, answer.stdout, answer.stderr) == (0, "Hello, Ann!\n", "")


@pytest.mark.parametrize("words", [["number=21"], ['{"number": 21}'], ['{"number": 21}', "note=1"]])
def test_structured(cli: CommandLine, words: list[str]) -> None:
    """Structured output is printed as JSON; arguments are pairs or objects."""
    answer = call(cli, "double", *words)
    assert answer.code == 0
    assert json.loads(answer.stdout) == {"doubled": 42}


def test_whole_result(cli: CommandLine) -> None:
    """With `--json`, the complete result is printed."""
    result = json.loads(call(cli, "greet", "name=Ann", "--json").stdout)
    assert result["content"] == [{"type": "text", "text": "Hello, Ann!"}]
    assert result["_meta"]


def test_default_target(cli: CommandLine) -> None:
    """`-` stands for the default target."""
    cli.write("axolotl.toml", 'target = "axolotl_examples.starter:Container"\n')
    assert cli("call", "-", "echo", "text=5").stdout == "5\n"


def test_tool_error(cli: CommandLine) -> None:
    """A tool that fails gives exit code 1, and its text goes to stderr."""
    answer = call(cli, "complain")
    assert (answer.code, answer.stdout, answer.stderr) == (1, "", "This is not my day.\n")


def test_tool_error_as_json(cli: CommandLine) -> None:
    """The complete result of a failure is printed like any other."""
    answer = call(cli, "complain", "--json")
    assert answer.code == 1
    assert json.loads(answer.stdout)["isError"] is True


def test_crash(cli: CommandLine) -> None:
    """The result hides the exception; the log has it."""
    answer = call(cli, "crash")
    assert answer.code == 1
    assert "RuntimeError: the secret" in answer.stderr
    assert "Tool crash failed. Reference:" in answer.stderr.splitlines()[-1]


def test_invalid_arguments(cli: CommandLine) -> None:
    """Invalid arguments are an error of the tool, as in the protocol."""
    answer = call(cli, "double", "number=many")
    assert answer.code == 1
    assert "number" in answer.stderr


def test_unknown_tool(cli: CommandLine) -> None:
    """An unknown tool gives exit code 3 and a suggestion."""
    answer = call(cli, "gret")
    assert (answer.code, answer.stdout) == (3, "")
    assert answer.stderr == "Error: Tool not found: gret (did you mean 'greet'?) (-32602)\n"


def test_unknown_tool_without_a_similar_one(cli: CommandLine) -> None:
    """If no tool has a similar name, all are listed."""
    answer = cli("call", "axolotl_examples.starter:Container", "xy")
    assert answer.code == 3
    assert answer.stderr.startswith("Error: Tool not found: xy (-32602)\nThis server has these tools: ")
    assert " echo, " in answer.stderr


def test_unknown_tool_as_json(cli: CommandLine) -> None:
    """A refusal is printed as a JSON-RPC error."""
    answer = call(cli, "gret", "--json")
    assert answer.code == 3
    assert json.loads(answer.stdout)["error"]["code"] == -32602


def test_impossible_name(cli: CommandLine) -> None:
    """A name that no tool can have is refused like an unknown one."""
    assert call(cli, " not\na name ").code == 3


@pytest.mark.parametrize("word", ["Ann", "=Ann", "{name", '{"name": }'])
def test_unreadable_arguments(cli: CommandLine, word: str) -> None:
    """A word that is neither a pair nor an object is a usage error."""
    answer = call(cli, "greet", word)
    assert (answer.code, answer.stdout) == (2, "")
    assert len(answer.stderr.splitlines()) == 1


def test_progress(cli: CommandLine) -> None:
    """Progress is for terminals only."""
    answer = call(cli, "count")
    assert (answer.stdout, answer.stderr) == ("done\n", "")


def test_noise(processes: Processes) -> None:
    """Output of user code does not mix with the result."""
    code, stdout, stderr = processes.run(
        "call", "tests.support.containers.noisy_container:Container", "shout", "text=hey"
    )
    assert (code, stdout) == (0, "HEY\n")
    assert stderr.count("noise from") == 6


def test_stuck_thread(processes: Processes, pipe: Path) -> None:
    """A tool that never ends does not keep the command from ending."""
    code, _, stderr = processes.run("call", SAMPLE, "read", f"path={pipe}", AXOLOTL_TOOLS__READ__TIMEOUT_SECONDS="0.2")
    assert code == 1
    assert "did not finish within 0.2 seconds" in stderr
    assert "exiting although these did not end: axolotl-tool_0" in stderr


FAILING = """
import json
from dependency_injector import containers, providers
from axolotl_core import tool

def parse(text):
    return json.loads(text)

@tool
async def boom(text: str) -> str:
    \"\"\"Fail in a library.\"\"\"
    try:
        return parse(text)
    except ValueError as error:
        raise LookupError("no such text") from error

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(boom))
"""


def test_tracebacks_show_user_code(processes: Processes, tmp_path: Path) -> None:
    """A failed call shows the frames of the user's files only, also of the cause; log level debug shows all."""
    (tmp_path / "failing.py").write_text(FAILING, encoding="utf-8")
    code, stdout, stderr = processes.run("call", "failing.py", "boom", "text=x", directory=tmp_path)
    assert (code, stdout) == (1, "")
    files = [line.strip() for line in stderr.splitlines() if line.strip().startswith("File ")]
    assert len(files) == 3
    assert all(str(tmp_path / "failing.py") in line for line in files)
    assert "JSONDecodeError: Expecting value" in stderr
    assert "LookupError: no such text" in stderr
    assert "frames of libraries are not shown; log level debug shows all)" in stderr
    words = ("call", "failing.py", "boom", "text=x")
    _, _, whole = processes.run(*words, directory=tmp_path, AXOLOTL_LOG_LEVEL="debug")
    assert "feature_method.py" in whole
    assert "decoder.py" in whole
    assert "not shown" not in whole


@pytest.mark.parametrize("words", [["call", "greet", "name=Ada"], ["prompt", "greet"]])
def test_a_name_in_place_of_the_target(cli: CommandLine, words: list[str]) -> None:
    """Whoever forgets the `-` reads what to write."""
    cli.write("axolotl.toml", f'target = "{SAMPLE}"\n')
    cli.write("named.py", "")
    command, name, *_ = words
    answer = cli(*words, "value=1")
    assert answer.code == 2
    assert answer.stderr.endswith(
        f"write - before it for the target in the settings file, as in axolotl {command} - {name}\n"
    )
    assert "is not a target" not in cli(command, "named", "value=1").stderr
    alone = cli(command, name).stderr.replace("│\n│ ", "")
    assert re.search(
        rf"Missing argument 'NAME'\. '{name}' was read as TARGET: .* write +axolotl {command} - {name}", alone
    )
