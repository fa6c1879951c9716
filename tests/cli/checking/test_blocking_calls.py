"""`axolotl check` finds asynchronous tools that block the event loop."""

import json
from typing import Any

import pytest

from axolotl_cli.checking.blocking_calls import blocking_calls
from axolotl_core import tool, tools_of
from tests.cli.conftest import CommandLine
from tests.support.containers import blocking_tools


def names_in(blocking: Any) -> list[str]:
    """Give what a tool is said to call, without the lines."""
    return [name.partition(" in line ")[0] for name in blocking_calls(blocking)]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("sleeps", ["time.sleep"]),
        ("sleeps_by_another_name", ["time.sleep"] * 3),
        ("imports_itself", ["time.sleep", "subprocess.run"]),
        ("runs_commands", ["os.system", "subprocess.check_output"]),
        ("fetches", ["httpx.get", "urllib.request.urlopen", "urllib.request.urlopen"]),
        ("connects", ["socket.create_connection"]),
        ("blocks_by_way_of_others", ["time.sleep"]),
    ],
)
def test_what_blocks_is_found(name: str, calls: list[str]) -> None:
    """By whatever name it goes, and also in plain functions that the tool calls."""
    assert names_in(getattr(blocking_tools, name)) == calls


def test_classes_and_methods_are_read() -> None:
    """Tools that are classes, streams or methods are no better, nor are prompts and resources."""
    assert names_in(blocking_tools.Nested()) == ["time.sleep", "httpx.post"]
    assert names_in(blocking_tools.Streaming()) == ["time.sleep"]
    assert names_in(blocking_tools.Speech()) == names_in(blocking_tools.Page()) == ["time.sleep"]
    assert [names_in(one) for one in tools_of(blocking_tools.Service())] == [["time.sleep"]]


@pytest.mark.parametrize("name", ["awaits", "has_its_own", "plain", "recursive"])
def test_what_does_not_block_is_left_alone(name: str) -> None:
    """What runs in a thread, or is not known, is nobody's business."""
    assert names_in(getattr(blocking_tools, name)) == []


def test_code_without_a_source_is_left_alone() -> None:
    """Where nothing can be read nothing is said, and nothing fails."""
    assert names_in(tool(blocking_tools.sourceless["made"])) == []


def test_the_line_is_named() -> None:
    """The finding leads to the place."""
    [found] = blocking_calls(blocking_tools.sleeps)
    line = int(found.rpartition(" ")[2])
    with open(blocking_tools.__file__, encoding="utf-8") as source:
        assert "time.sleep(_SECONDS)" in source.read().splitlines()[line - 1]


def test_check_warns(cli: CommandLine) -> None:
    """The command shows it, and the server may start nevertheless."""
    cli.write(
        "server.py",
        "import time\n"
        "from dependency_injector import containers, providers\n"
        "from axolotl_core import tool\n\n\n"
        "@tool\n"
        "async def nap() -> None:\n"
        '    """Sleep."""\n'
        "    time.sleep(1)\n\n\n"
        '@tool(execution="thread")\n'
        "async def nap_aside() -> None:\n"
        '    """Sleep in a thread."""\n'
        "    time.sleep(1)\n\n\n"
        "class Container(containers.DeclarativeContainer):\n"
        "    tools = providers.List(providers.Object(nap), providers.Object(nap_aside))\n",
    )
    answer = cli("check", "server.py", "--json")
    assert answer.code == 0
    [finding] = json.loads(answer.stdout)["findings"]
    assert (finding["severity"], finding["tool"]) == ("warning", "nap")
    assert finding["message"] == (
        "Tool 'nap' blocks the event loop with time.sleep in line 9: make it a plain function, which runs in a thread"
    )
