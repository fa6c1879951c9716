"""The message of an approval question."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from axolotl_core import ConfigurationError, Context, ITool, ToolAnnotations
from axolotl_core.policies.audit import Sensitive
from axolotl_core.policies.tool_rules import Approval
from axolotl_core.tools.schema_tool import SchemaTool
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

    async def execute(self, arguments: Transfer, context: Context) -> None:
        return None


def message(arguments: dict[str, Any], rule: Approval | None = None) -> str:
    spec = spec_of(Pay())
    return message_writer(spec, rule or Approval(), redactor(spec))(json.dumps(arguments).encode())


def test_it_names_the_tool_and_shows_the_arguments() -> None:
    """The message shows the tool's own text, its title and name, and then the arguments in their order."""
    shown = message({"amount": 1.50, "target": "Ada"}, Approval("Really?"))
    assert shown == 'Really?\nTool: Pay money (pay)\ntarget: "Ada"\namount: 1.5'


def test_it_does_not_depend_on_how_arguments_are_written() -> None:
    """Equal arguments give the same message in the next round, regardless of their order and spelling."""
    tell = message_writer(spec_of(Pay()), Approval(), None)
    assert tell(b'{"target":"A","amount":2}') == tell(b' { "amount" : 2,\n "t\\u0061rget": "\\u0041"}')


def test_sensitive_values_are_hidden() -> None:
    """Sensitive values are hidden at any depth."""
    shown = message({"target": "Ada", "token": "swordfish", "login": {"password": "swordfish", "pin": "swordfish"}})
    assert "swordfish" not in shown
    assert shown.splitlines()[2:] == ['target: "Ada"', "token: (hidden)", 'login: {"password":"***","pin":"***"}']


def test_only_the_arguments_that_matter() -> None:
    """A tool can select the shown arguments and their order."""
    shown = message({"target": "Ada", "amount": 2}, Approval(arguments=("amount",)))
    assert shown.splitlines()[2:] == ["amount: 2"]


def test_arguments_that_are_not_there_are_found_at_the_start() -> None:
    """The server does not start if a selected argument does not exist."""
    with pytest.raises(ConfigurationError, match=r"'pay'.*'amuont'"):
        message({}, Approval(arguments=("amuont",)))


def test_write_only_arguments_of_a_raw_schema_are_hidden() -> None:
    """Arguments of a raw schema are shown, except those marked as write-only."""
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
    """Long values are shortened with their length, and very large arguments are not shown."""
    line = message({"target": "a" * 3000}).splitlines()[2]
    assert line.endswith("(3002 characters)")
    assert len(line) < 500
    assert message({"target": "a" * 30_000}).endswith("\nwith arguments that cannot be shown (30014 bytes)")


def test_many_arguments() -> None:
    """The number of shown arguments is limited."""
    spec = spec_of(SchemaTool("store", {}, lambda _: None))
    lines = message_writer(spec, Approval(), None)(json.dumps({f"a{n}": n for n in range(100)}).encode()).splitlines()
    assert len(lines) == 43
    assert lines[-1] == "and 60 more arguments"


@given(st.text(), st.text())
def test_arguments_stay_on_one_line(target: str, name: str) -> None:
    """Arguments stay on one line, with control characters escaped."""
    spec = spec_of(SchemaTool("store", {}, lambda _: None))
    raw = json.dumps({"target": target, f"_{name}": 1}).encode()
    shown = message_writer(spec, Approval(), None)(raw)
    assert len(shown.split("\n")) == 4
    assert all(line.isprintable() for line in shown.split("\n"))


def test_the_title_of_the_annotations() -> None:
    """Without a title, the title of the annotations is shown."""
    tool = Pay()
    tool.title, tool.annotations = None, ToolAnnotations(title="Send money")
    assert message_writer(spec_of(tool), Approval(), None)(b"{}").endswith("\nTool: Send money (pay)")
