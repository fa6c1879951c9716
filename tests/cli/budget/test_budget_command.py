"""`axolotl budget`: the cost of tools, advice and limits."""

import json
import sys
from textwrap import dedent
from typing import Any, Final

import pytest

from axolotl_core.protocol.wire import encode
from tests.cli.conftest import CommandLine

CODE: Final = """
    from typing import Annotated, Literal

    from dependency_injector import containers, providers
    from pydantic import BaseModel, Field

    from axolotl_core import tool


    class Answer(BaseModel):
        text: str


    @tool
    async def small(number: int) -> Answer:
        '''Do something small.'''
        return Answer(text="")


    @tool(description="{long}")
    async def large(
        country: Literal[{values}],
        first_name: Annotated[str, Field(title="First Name", description="{text}")],
    ) -> str:
        return ""


    class Container(containers.DeclarativeContainer):
        tools = providers.Aggregate(
            read=providers.List(providers.Object(small)), write=providers.List(providers.Object(large))
        )
"""
RULES: Final = """
    [[authorization.rules]]
    name = "readers"
    effect = "allow"
    who = {{ roles = ["reader"] }}
    what = {{ toolsets = ["{toolset}"] }}
"""


@pytest.fixture(autouse=True)
def project(cli: CommandLine) -> None:
    """Write a server with an expensive tool to the directory of the commands."""
    values = ", ".join(f'"country-{number:03}"' for number in range(60))
    cli.write("shop.py", dedent(CODE).format(long="Long. " * 100, values=values, text="Text. " * 50))
    cli.write("axolotl.toml", 'target = "shop.py"\n')


def report_of(cli: CommandLine, *words: str) -> Any:
    answer = cli("budget", "--format", "json", *words)
    assert answer.code == 0
    return json.loads(answer.stdout)


def test_the_cost_is_that_of_compact_json(cli: CommandLine) -> None:
    """Name, description and input schema count; the output schema has columns of its own."""
    report = report_of(cli)
    small = {tool["name"]: tool for tool in report["tools"]}["small"]
    schema = {"properties": {"number": {"type": "integer"}}, "required": ["number"], "type": "object"}
    seen = {
        "name": "small",
        "description": "Do something small.",
        "inputSchema": {**schema, "additionalProperties": False},
    }
    size = len(encode(seen))
    output = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert (small["bytes"], small["tokens"]) == (size, -(-size // 4))
    assert (small["output_bytes"], small["output_tokens"]) == (len(encode(output)), -(-len(encode(output)) // 4))
    assert report["method"].startswith("estimate: UTF-8 bytes / 4")


def test_tools_add_up(cli: CommandLine) -> None:
    """The costs of tool sets and of the server are sums; --toolset selects."""
    report = report_of(cli)
    for field in ("bytes", "tokens", "output_bytes"):
        assert report["total"][field] == sum(tool[field] for tool in report["tools"])
        assert report["total"][field] == sum(cost[field] for cost in report["toolsets"].values())
    assert [*report["toolsets"]] == ["write", "read"]
    only = report_of(cli, "--toolset", "read")
    assert [tool["name"] for tool in only["tools"]] == ["small"]
    assert only["total"] == report["toolsets"]["read"]


def test_advice_names_the_bytes_that_it_saves(cli: CommandLine) -> None:
    """Long descriptions, large enums and titles that repeat names are found; the saved bytes are real."""
    advice = {one["place"]: one for one in report_of(cli)["advice"]}
    assert advice["/description"]["saved_bytes"] == len("Long. " * 100) - 500
    assert advice["/inputSchema/properties/first_name/description"]["saved_bytes"] == 100
    assert advice["/inputSchema/properties/first_name/title"]["saved_bytes"] == len('"title":"First Name",')
    values = [f"country-{number:03}" for number in range(60)]
    assert advice["/inputSchema/properties/country/enum"]["saved_bytes"] == len(encode(values))
    assert "60 values are listed" in advice["/inputSchema/properties/country/enum"]["message"]
    assert {one["tool"] for one in advice.values()} == {"large"}


def test_repeated_parts_are_found(cli: CommandLine) -> None:
    """A part that occurs several times in one schema is counted once, without its own parts."""
    cli.write(
        "routes.py",
        dedent("""
            from dependency_injector import containers, providers
            from pydantic import BaseModel

            from axolotl_core import ITool, ToolContext


            class Place(BaseModel):
                street_and_number: str
                town_or_village: str
                country_or_region: str


            class Journey(BaseModel):
                start: Place
                end: Place


            class Route(ITool[Journey, str]):
                name = "route"
                description = "Find a route."

                async def execute(self, arguments: Journey, context: ToolContext) -> str:
                    return ""


            class Container(containers.DeclarativeContainer):
                tools = providers.List(providers.Singleton(Route))
        """),
    )
    assert report_of(cli, "routes.py")["advice"] == []
    cli.write("axolotl.toml", "[tools]\ninline_references = true\n")
    [advice] = report_of(cli, "routes.py")["advice"]
    assert "occur 2 times" in advice["message"]
    assert advice["saved_bytes"] > 100


def test_the_limit(cli: CommandLine) -> None:
    """More tokens than allowed are an error with exit code 1; the report is printed anyway."""
    tokens = report_of(cli)["total"]["tokens"]
    assert cli("budget", "--max-tokens", str(tokens)).code == 0
    answer = cli("budget", "--max-tokens", str(tokens - 1))
    assert answer.code == 1
    assert f"The tools cost {tokens:,} tokens, but at most {tokens - 1:,} are allowed" in answer.stderr
    assert "2 tools: " in answer.stdout.splitlines()[-1]
    assert cli("budget", "--max-tokens", str(tokens - 1), "--format", "json").code == 1


def test_a_tokenizer_counts_exactly(cli: CommandLine) -> None:
    """The output names the tokenizer. The estimate is a bit too high for usual texts and schemas."""
    words = ("--toolset", "read")
    counted, estimated = report_of(cli, *words, "--tokenizer", "o200k_base"), report_of(cli, *words)
    assert counted["method"].startswith("o200k_base, counted by splintr-rs ")
    assert 0.7 < counted["total"]["tokens"] / estimated["total"]["tokens"] < 1
    assert counted["total"]["bytes"] == estimated["total"]["bytes"]


def test_unknown_tokenizers(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown name is an error with a suggestion; without the package, the error says what to install."""
    answer = cli("budget", "--tokenizer", "o20k_base")
    assert answer.code == 2
    assert "did you mean 'o200k_base'?" in answer.stderr
    assert "use one of cl100k_base" in cli("budget", "--tokenizer", "?").stderr
    monkeypatch.setitem(sys.modules, "splintr", None)
    answer = cli("budget", "--tokenizer", "o200k_base")
    assert answer.code == 2
    assert "--tokenizer needs the extra budget" in answer.stderr


def test_only_the_tools_of_a_principal_are_counted(cli: CommandLine) -> None:
    """With --as, the rest costs nothing. A tool that no rule allows is worth a suggestion."""
    cli.write("axolotl.toml", 'target = "shop.py"\n' + dedent(RULES).format(toolset="read"))
    assert [tool["name"] for tool in report_of(cli, "--as", "ann", "--role", "reader")["tools"]] == ["small"]
    assert report_of(cli, "--as", "ann")["total"]["tools"] == 0
    everything = report_of(cli)
    assert everything["total"]["tools"] == 2
    [advice] = everything["advice"]
    assert (advice["tool"], advice["message"]) == (
        "large",
        "no rule allows anybody to use it: remove it, or add a rule",
    )


def test_the_table(cli: CommandLine) -> None:
    """The table lists tools, tool sets and advice, and ends with the sum and the method."""
    lines = cli("budget").stdout.splitlines()
    assert lines[0].split() == ["Tool", "Tool", "set", "Bytes", "Tokens", "Output", "bytes", "Output", "tokens"]
    assert lines[2].startswith("large   write")
    assert any(line.startswith("Saves") for line in lines)
    assert lines[-1].endswith("tokens (estimate: UTF-8 bytes / 4, rounded up for each tool)")
