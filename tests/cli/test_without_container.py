"""Modules without a container: what they define is served."""

import json
import re
import signal
from pathlib import Path
from textwrap import dedent

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server import connect
from axolotl_server.hosting.container_loading import import_path, load_container
from tests.cli.conftest import CommandLine
from tests.support.processes import READY, Processes

IMPORTS = """\
from axolotl_core import Context, ITool, NoArguments, prompt, resource, tool
"""
GREETER = f"""{IMPORTS}

@tool
async def greet(name: str) -> str:
    "Greet someone."
    return f"Hello, {{name}}!"
"""
HINT = (
    "has no container. A container passes tools what they need, and has settings and other roles: write class "
    "Container(containers.DeclarativeContainer) with tools = providers.List(providers.Singleton(MyTool))\n"
)
REFUND = """
class Refund(ITool[NoArguments, str]):
    name = "refund"

    def __init__(self, orders, clock, currency="EUR"):
        self.orders = orders

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "done"
"""


@pytest.mark.parametrize("target", ["greeter.py", "greeter"])
def test_commands(cli: CommandLine, target: str) -> None:
    """Commands take a file or a module with tools, and say once what a container adds."""
    cli.write("greeter.py", GREETER)
    listed = cli("list", target, "--json")
    assert [tool["name"] for tool in json.loads(listed.stdout)["tools"]] == ["greet"]
    called = cli("call", target, "greet", "name=Ada")
    assert (called.code, called.stdout) == (0, "Hello, Ada!\n")
    assert listed.stderr == called.stderr == f"{target} {HINT}"
    checked = cli("check", target)
    assert (checked.code, checked.stderr) == (0, f"{target} {HINT}")
    assert f"{target}: 1 tool, 0 errors, 1 warning" in checked.stdout


def test_all_kinds(cli: CommandLine) -> None:
    """Functions, and classes without arguments, are served; what a module imports or holds in a variable is not."""
    cli.write("other.py", GREETER)
    cli.write(
        "kinds.py",
        f"""{IMPORTS}
from axolotl_core.prompts import IPrompt
from other import greet


class Ping(ITool[NoArguments, str]):
    name = "ping"

    def __init__(self, reply="pong"):
        self.reply = reply

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return self.reply


@tool(scanned=False)
def hidden() -> str:
    return ""


@prompt
def review(code: str) -> str:
    "Review code."
    return code


@resource("notes://all")
def notes() -> str:
    "All notes."
    return "one"


@resource("notes://one/{{number}}")
def note(number: int) -> str:
    "One note."
    return "one"


again = review
""",
    )
    listed = json.loads(cli("list", "kinds.py", "--json").stdout)
    names = {kind: [feature["name"] for feature in features] for kind, features in listed.items()}
    assert names == {
        "tools": ["ping"],
        "prompts": ["review"],
        "resources": ["notes"],
        "templates": ["note"],
        "skills": [],
    }
    assert cli("call", "kinds.py", "ping").stdout == "pong\n"


def test_a_container_comes_first(cli: CommandLine) -> None:
    """If the module has a container, its tools are served, and no others."""
    container = """
        from dependency_injector import containers, providers

        class Container(containers.DeclarativeContainer):
            tools = providers.List(providers.Object(greet))
    """
    cli.write("both.py", GREETER + REFUND + dedent(container))
    answer = cli("list", "both.py", "--json")
    assert [tool["name"] for tool in json.loads(answer.stdout)["tools"]] == ["greet"]
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("text", "target", "finding"),
    [
        pytest.param(
            GREETER + REFUND,
            "shop.py",
            "Refund (shop.py:9) needs orders, clock, which a container passes, and shop.py has none: write class "
            "Container(containers.DeclarativeContainer) with a provider of Refund, such as "
            "providers.Singleton(Refund, orders=…, clock=…)",
            id="arguments",
        ),
        pytest.param(
            "x = 1\n",
            "shop",
            "shop has no container, and defines no tool, prompt or resource: write a function with @tool, or "
            "shop:Container",
            id="nothing",
        ),
        pytest.param(
            GREETER + "from dependency_injector import containers\n"
            "class Shop(containers.DeclarativeContainer):\n    pass\n\nmade = Shop()\n",
            "shop.py",
            "shop.py does not name a container: write shop.py:Shop or shop.py:made",
            id="another-name",
        ),
        pytest.param(
            GREETER, "shop.py:greet", "shop.py:greet is FunctionTool, not a dependency-injector container", id="tool"
        ),
        pytest.param(GREETER, "shop:Container", "'shop' has no attribute 'Container'", id="no-container"),
        pytest.param(GREETER, "shpo.py", "There is no file shpo.py; did you mean shop.py?", id="file"),
        pytest.param(GREETER, "shpo", "Module 'shpo' not found; did you mean 'shop'?", id="module"),
    ],
)
def test_mistakes(cli: CommandLine, text: str, target: str, finding: str) -> None:
    """What cannot be served is one finding, with what to do."""
    cli.write("shop.py", text)
    answer = cli("list", target)
    assert (answer.code, answer.stdout, answer.stderr.rstrip("\n")) == (2, "", f"Error: {finding}")


def test_every_class_with_arguments_is_named(tmp_path: Path) -> None:
    """All classes that need a container are found at once, and nothing is made before."""
    file = tmp_path / "needing.py"
    file.write_text(IMPORTS + REFUND + REFUND.replace("Refund", "Another"), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_container(str(file))
    assert [finding.split(" ")[0] for finding in caught.value.findings] == ["Refund", "Another"]


async def test_in_code(tmp_path: Path) -> None:
    """Tests and other applications load such a module too; there is no container that they could import."""
    file = tmp_path / "loaded.py"
    file.write_text(GREETER, encoding="utf-8")
    async with connect(load_container(str(file))) as client:
        assert (await client.call("greet", {"name": "Ada"})).text == "Hello, Ada!"
    assert import_path(str(file)) == ("loaded", "", False)


def test_serve(processes: Processes, tmp_path: Path) -> None:
    """Over stdio, the client gets the tools, and its log the hint."""
    (tmp_path / "greeter.py").write_text(GREETER, encoding="utf-8")
    server = processes.start("serve", "greeter.py", directory=tmp_path)
    server.shake_hands()
    assert [tool["name"] for tool in server.ask("tools/list")["tools"]] == ["greet"]
    assert server.end() == (0, "", f"greeter.py {HINT}")


@pytest.mark.slow
def test_workers_log_it_once(processes: Processes, tmp_path: Path) -> None:
    """Of several workers only the first one says it; a log of JSON lines stays one."""
    (tmp_path / "greeter.py").write_text(GREETER, encoding="utf-8")
    (tmp_path / "axolotl.toml").write_text('[log]\nformat = "json"\n', encoding="utf-8")
    words = ("--transport", "http", "--port", "0", "--workers", "2")
    server = processes.start("serve", "greeter.py", *words, directory=tmp_path)
    lines = server.read_until("workers serve")
    messages = [json.loads(line)["message"] for line in lines.splitlines()[:-1]]
    assert [message for message in messages if "no container" in message] == [f"greeter.py {HINT}".rstrip()]
    server.signal(signal.SIGINT)
    assert server.end()[0] == 0


@pytest.mark.slow
def test_dev(processes: Processes, tmp_path: Path) -> None:
    """The development server reloads such a file, and says once what a container adds."""
    file = tmp_path / "greeter.py"
    file.write_text(GREETER, encoding="utf-8")
    server = processes.start("dev", "greeter.py", "--port", "0", directory=tmp_path)
    begun = server.read_until(READY)
    assert begun.startswith(f"greeter.py {HINT}")
    assert re.search(r"serves 1 tool at http://127\.0\.0\.1:\d+/mcp", begun)
    file.write_text(GREETER + GREETER.replace("greet", "wave"), encoding="utf-8")
    reloaded = server.read_until("2 tools")
    assert "reloaded in" in reloaded
    assert HINT not in reloaded
    server.signal(signal.SIGINT)
    assert server.end()[0] == 0
