"""What a person reads before saying yes."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from axolotl_core import ConfigurationError, ITool, SchemaTool, ToolAnnotations, ToolContext
from axolotl_core.policies.audit import Sensitive
from axolotl_core.policies.tool_rules import Approval
from axolotl_server.audit.redaction import redactor
from axolotl_server.layers.approval_question import message_writer
from tests.support.peers.layer_calls import spec_of


class Login(BaseModel):
    password: SecretStr
    pin: Annotated[str, Sensitive]


class Transfer(BaseModel):
    target: str
    amount: float = 0
    token: Annotated[str, Sensitive] = ""
    login: Login | None = None


class Pay(ITool[Transfer, None]):
    name = "pay"
    title: str | None = "Pay money"

    async def execute(self, arguments: Transfer, context: ToolContext) -> None:
        return None


def message(arguments: dict[str, Any], rule: Approval | None = None) -> str:
    spec = spec_of(Pay())
    return message_writer(spec, rule or Approval(), redactor(spec))(json.dumps(arguments).encode())


def test_it_names_the_tool_and_shows_the_arguments() -> None:
    """The words of the tool come first, then its title and name, then the arguments in the order of the tool."""
    shown = message({"amount": 1.50, "target": "Ada"}, Approval("Really?"))
    assert shown == 'Really?\nTool: Pay money (pay)\ntarget: "Ada"\namount: 1.5'


def test_it_does_not_depend_on_how_arguments_are_written() -> None:
    """The same arguments make the same question in the next round, whatever their order and their spelling."""
    tell = message_writer(spec_of(Pay()), Approval(), None)
    assert tell(b'{"target":"A","amount":2}') == tell(b' { "amount" : 2,\n "t\\u0061rget": "\\u0041"}')


def test_sensitive_values_are_hidden() -> None:
    """What no record may show is not shown here, also deep inside."""
    shown = message({"target": "Ada", "token": "swordfish", "login": {"password": "swordfish", "pin": "swordfish"}})
    assert "swordfish" not in shown
    assert shown.splitlines()[2:] == ['target: "Ada"', "token: (hidden)", 'login: {"password":"***","pin":"***"}']


def test_only_the_arguments_that_matter() -> None:
    """A tool may choose what is shown, and in which order."""
    shown = message({"target": "Ada", "amount": 2}, Approval(arguments=("amount",)))
    assert shown.splitlines()[2:] == ["amount: 2"]


def test_arguments_that_are_not_there_are_found_at_the_start() -> None:
    """A misspelt argument keeps the server from starting."""
    with pytest.raises(ConfigurationError, match=r"'pay'.*'amuont'"):
        message({}, Approval(arguments=("amuont",)))


def test_a_raw_schema_says_what_is_secret() -> None:
    """Arguments without types are shown, but for those whose schema says that they are only written."""
    schema = {"properties": {"name": {"type": "string"}, "key": {"type": "string", "writeOnly": True}}}
    spec = spec_of(SchemaTool("store", schema, lambda _: None))
    tell = message_writer(spec, Approval(), redactor(spec))
    assert tell(b'{"key": "swordfish", "name": "n", "more": 1}').splitlines()[1:] == [
        "Tool: store",
        'name: "n"',
        "key: (hidden)",
        "more: 1",
    ]


def test_large_arguments() -> None:
    """What is too long is cut in the middle and says how long it is; what is too much is not shown at all."""
    line = message({"target": "a" * 3000}).splitlines()[2]
    assert line.endswith("(3002 characters)")
    assert len(line) < 500
    assert message({"target": "a" * 30_000}).endswith("\nwith arguments that cannot be shown (30014 bytes)")


def test_many_arguments() -> None:
    """A flood of arguments does not push the question out of sight."""
    spec = spec_of(SchemaTool("store", {}, lambda _: None))
    lines = message_writer(spec, Approval(), None)(json.dumps({f"a{n}": n for n in range(100)}).encode()).splitlines()
    assert len(lines) == 43
    assert lines[-1] == "and 60 more arguments"


@given(st.text(), st.text())
def test_arguments_cannot_pretend_to_be_something_else(target: str, name: str) -> None:
    """Whatever a model writes stays on the line of its argument, and everything in it can be seen."""
    spec = spec_of(SchemaTool("store", {}, lambda _: None))
    raw = json.dumps({"target": target, f"_{name}": 1}).encode()
    shown = message_writer(spec, Approval(), None)(raw)
    assert len(shown.split("\n")) == 4
    assert all(line.isprintable() for line in shown.split("\n"))


def test_the_title_of_the_annotations() -> None:
    """Where the tool has no title, that of its annotations stands there."""
    tool = Pay()
    tool.title, tool.annotations = None, ToolAnnotations(title="Send money")
    assert message_writer(spec_of(tool), Approval(), None)(b"{}").endswith("\nTool: Send money (pay)")
