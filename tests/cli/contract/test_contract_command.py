"""`axolotl contract`: freezing, comparing and checking a contract."""

import json
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from axolotl_cli.contract.change_report import ContractReport
from tests.cli.conftest import CommandLine
from tests.support.commands import ROOT

SHOP = """
    from dependency_injector import containers, providers
    from pydantic import BaseModel

    from axolotl_core import ITool, Context, prompt, resource, tool


    class Number(BaseModel):
        number: {number}


    class Track(ITool[Number, str]):
        name = "track"
        description = "{description}"

        async def execute(self, arguments: Number, context: Context) -> str:
            return "sent"


    @tool(scopes={{"orders"}}, timeout_seconds={timeout})
    async def restock(product: str) -> bool:
        '''Order more of a product.'''
        return True


    @prompt
    async def apology(tone: str = "kind") -> str:
        '''Apologize.'''
        return tone


    @resource("orders://all")
    async def orders() -> str:
        '''All orders.'''
        return ""


    class Container(containers.DeclarativeContainer):
        tools = providers.Aggregate(
            read=providers.List(providers.Singleton(Track)), write=providers.List(providers.Object(restock))
        )
        prompts = providers.List(providers.Object(apology))
        resources = providers.List(providers.Object(orders))
"""
DENIED = """
    target = "shop.py"
    [authorization]
    default = "deny"
"""


class Shop:
    """A project with a server, whose contract the tests change."""

    def __init__(self, cli: CommandLine) -> None:
        self.cli = cli
        cli.write("axolotl.toml", dedent(DENIED))
        self.change()

    def change(self, *, number: str = "int", description: str = "Track an order.", timeout: float = 30) -> None:
        code = dedent(SHOP).format(number=number, description=description, timeout=timeout)
        self.cli.write("shop.py", code)

    def commit(self) -> None:
        """Make a revision of everything in the directory."""
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x", "--no-gpg-sign"]):
            identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
            subprocess.run(["git", *identity, *words], cwd=self.cli.directory, check=True, capture_output=True)


@pytest.fixture
def shop(cli: CommandLine) -> Shop:
    """Write a project to the directory of the commands."""
    return Shop(cli)


def test_freezing_twice_changes_nothing(cli: CommandLine, shop: Shop) -> None:
    """The lock holds all features although the policy hides them; the second file is the same."""
    answer = cli("contract", "freeze")
    assert answer.code == 0
    lock = (cli.directory / "axolotl.lock.json").read_bytes()
    document = json.loads(lock)
    lines = answer.stdout.splitlines()
    assert lines == ["axolotl.lock.json: 2 tools, 1 prompt, 1 resource, written", document["digest"]]
    assert document["tools"]["restock"]["scopes"] == ["orders"]
    assert document["tools"]["restock"]["toolset"] == "write"
    assert document["prompts"]["apology"]["arguments"] == {"tone": {"required": False}}
    assert cli("contract", "freeze").stdout.splitlines()[0].endswith("unchanged")
    assert (cli.directory / "axolotl.lock.json").read_bytes() == lock


def test_another_file(cli: CommandLine, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files on the command line are relative to the directory of the command, also inside of the project."""
    inner = cli.directory / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert cli("contract", "freeze", "-o", "other.json").code == 0
    assert (inner / "other.json").is_file()
    monkeypatch.chdir(inner)
    assert cli("contract", "diff", "--against", "other.json").code == 0


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        ({}, 0, "no changes against axolotl.lock.json"),
        ({"number": "float"}, 0, "1 compatible change against axolotl.lock.json"),
        ({"number": "str"}, 1, "1 breaking change against axolotl.lock.json"),
        ({"description": "Follow an order."}, 4, "1 risky change against axolotl.lock.json"),
        ({"timeout": 10}, 4, "1 risky change against axolotl.lock.json"),
        ({"timeout": 60}, 0, "1 compatible change against axolotl.lock.json"),
    ],
    ids=["nothing", "wider input", "other type", "description", "lower limit", "higher limit"],
)
def test_exit_codes_of_diff(cli: CommandLine, shop: Shop, change: Any, code: int, line: str) -> None:
    """0 for compatible changes, 1 for breaking ones, 4 if some are risky and none is breaking."""
    cli("contract", "freeze")
    shop.change(**change)
    answer = cli("contract", "diff")
    assert answer.code == code
    assert answer.stdout.splitlines()[-1] == line


def test_the_table_shows_place_and_evidence(cli: CommandLine, shop: Shop) -> None:
    """Each change has a class, a feature, a place, a sentence and, if it is known, the affected values."""
    cli("contract", "freeze")
    shop.change(number="str")
    row = cli("contract", "diff").stdout.splitlines()[2]
    assert row.split("   ")[0].strip() == "breaking"
    for part in ("tool track", "/input/properties/number", 'type "integer" → "string"', '{"type":"integer"}'):
        assert part in row


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("diff",), "axolotl.lock.json does not exist: write it with axolotl contract freeze"),
        (("check",), "axolotl.lock.json does not exist: write it with axolotl contract freeze"),
        (("diff", "--against", "git:HEAD"), "git has no axolotl.lock.json at HEAD"),
        (("diff", "--against", "git:--output=x"), "git:--output=x does not name a revision"),
        (("diff", "--against", "git:HEAD:x"), "git:HEAD:x does not name a revision"),
        (("diff", "--against", "shop.py"), "shop.py is not a lock file"),
        (("diff", "--against", "."), "cannot be read"),
        (("freeze", "-o", "missing/lock.json"), "cannot be written"),
    ],
    ids=["diff", "check", "no git", "option", "path", "not a lock", "directory", "unwritable"],
)
def test_unusable_input(cli: CommandLine, shop: Shop, words: tuple[str, ...], problem: str) -> None:
    """What cannot be read is an error on stderr with exit code 2."""
    answer = cli("contract", *words)
    assert (answer.code, answer.stdout) == (2, "")
    assert problem in answer.stderr


def test_check_compares_with_the_lock_and_the_base(cli: CommandLine, shop: Shop) -> None:
    """A stale lock, a breaking change and an undecided one fail with 1, a risky one with 4 unless it is allowed."""
    cli("contract", "freeze")
    shop.commit()
    assert cli("contract", "check", "--base", "git:HEAD").code == 0
    shop.change(description="Follow an order.")
    stale = cli("contract", "check")
    assert stale.code == 1
    assert "axolotl.lock.json differs from the code: run axolotl contract freeze" in stale.stderr
    cli("contract", "freeze")
    assert cli("contract", "check").code == 0
    assert cli("contract", "check", "--base", "git:HEAD").code == 4
    assert cli("contract", "check", "--base", "git:HEAD", "--allow-risky").code == 0
    shop.change(number="str")
    cli("contract", "freeze")
    answer = cli("contract", "check", "--base", "git:HEAD", "--allow-risky")
    assert answer.code == 1
    assert answer.stdout.splitlines()[-1] == "1 breaking change against git:HEAD"


def test_an_undecided_change_fails_the_check(cli: CommandLine, shop: Shop) -> None:
    """What cannot be decided is risky for people, and not acceptable for the check."""
    pattern = "__import__('typing').Annotated[str, __import__('pydantic').Field(pattern=r'^{}+$')]"
    shop.change(number=pattern.format(r"\w"))
    cli("contract", "freeze")
    shop.commit()
    shop.change(number=pattern.format(r"[a-z]"))
    cli("contract", "freeze")
    answer = cli("contract", "diff", "--against", "git:HEAD")
    assert answer.code == 4
    assert "risky, undecided" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "1 risky change (1 undecided) against git:HEAD"
    assert cli("contract", "check", "--base", "git:HEAD", "--allow-risky").code == 1


def test_tool_sets(cli: CommandLine, shop: Shop) -> None:
    """With some tool sets, only these are frozen, and the rest of a lock is not missed."""
    cli("contract", "freeze")
    assert cli("contract", "diff", "--toolset", "read").code == 0
    assert cli("contract", "check", "--toolset", "read").code == 0
    cli("contract", "freeze", "--toolset", "read", "-o", "read.json")
    assert [*json.loads((cli.directory / "read.json").read_bytes())["tools"]] == ["track"]


def test_the_report_as_json_follows_its_schema(cli: CommandLine, shop: Shop) -> None:
    """The published schema is that of the code, and the output is valid."""
    path = ROOT / "docs/reference/contract-report.schema.json"
    published = json.loads(path.read_text(encoding="utf-8"))
    assert published == msgspec.json.schema(ContractReport), f"write it again: {Path(__file__).name}"
    cli("contract", "freeze")
    shop.change(number="str", timeout=10)
    report = json.loads(cli("contract", "diff", "--json").stdout)
    jsonschema_rs.validate(published, report)
    assert report["summary"] == {"breaking": 1, "risky": 1, "compatible": 0, "undecided": 0}
    assert [change["class"] for change in report["changes"]] == ["breaking", "risky"]
    assert report["changes"][0]["rule"] == "values-changed"
    assert (report["changes"][1]["old"], report["changes"][1]["new"]) == (30.0, 10.0)
