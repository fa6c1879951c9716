"""`axolotl budget`: the cost of tools, and limits."""

import json
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
    answer = cli("budget", "--json", *words)
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


def test_tools_add_up(cli: CommandLine) -> None:
    """The costs of tool sets and of the server are sums; --toolset selects."""
    report = report_of(cli)
    for field in ("bytes", "tokens", "output_bytes"):
        assert report["total"][field] == sum(tool[field] for tool in report["tools"])
        assert report["total"][field] == sum(cost[field] for cost in report["toolsets"])
    assert [cost["name"] for cost in report["toolsets"]] == ["write", "read"]
    only = report_of(cli, "--toolset", "read")
    assert [tool["name"] for tool in only["tools"]] == ["small"]
    assert only["total"]["tokens"] == report["toolsets"][1]["tokens"]


def test_the_limit(cli: CommandLine) -> None:
    """More tokens than allowed are an error with exit code 1; the report is printed anyway."""
    tokens = report_of(cli)["total"]["tokens"]
    assert cli("budget", "--max-tokens", str(tokens)).code == 0
    answer = cli("budget", "--max-tokens", str(tokens - 1))
    assert answer.code == 1
    assert f"The tools cost {tokens:,} tokens, but at most {tokens - 1:,} are allowed" in answer.stderr
    assert "2 tools: " in answer.stdout.splitlines()[-1]
    assert cli("budget", "--max-tokens", str(tokens - 1), "--json").code == 1


def test_only_the_tools_of_a_principal_are_counted(cli: CommandLine) -> None:
    """With --as, the rest costs nothing."""
    cli.write("axolotl.toml", 'target = "shop.py"\n' + dedent(RULES).format(toolset="read"))
    ann = '{"subject": "ann", "roles": ["reader"]}'
    assert [tool["name"] for tool in report_of(cli, "--as", ann)["tools"]] == ["small"]
    assert report_of(cli, "--as", "ann")["total"]["tools"] == 0
    assert report_of(cli)["total"]["tools"] == 2


def test_the_table(cli: CommandLine) -> None:
    """The table lists tools and tool sets, and ends with the sum."""
    lines = cli("budget").stdout.splitlines()
    assert lines[0].split() == ["Tool", "Tool", "set", "Bytes", "Tokens", "Output", "bytes", "Output", "tokens"]
    assert lines[2].startswith("large   write")
    assert lines[-1].endswith(" tokens (UTF-8 bytes / 4, rounded up for each tool)")
