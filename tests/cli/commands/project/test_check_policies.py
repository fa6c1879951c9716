"""`axolotl check` and rules that match nothing."""

import json
from textwrap import dedent

import pytest

from tests.cli.conftest import CommandLine

CODE = """
    from dependency_injector import containers, providers

    from axolotl_core import tool


    @tool
    async def pay() -> str:
        '''Pay.'''
        return "paid"


    class Billing(containers.DeclarativeContainer):
        tools = providers.List(providers.Object(pay))


    class Container(containers.DeclarativeContainer):
        billing = providers.Container(Billing)
"""

QUOTA = """
    [quotas.rules.trial]
    toolsets = ["{toolset}"]
    rate_per_second = 1
"""

RULE = """
    [[authorization.rules]]
    name = "clerks"
    effect = "allow"
    what = {{ toolsets = ["{toolset}"] }}
"""


@pytest.mark.parametrize(
    ("rule", "setting"),
    [
        pytest.param(QUOTA, "quotas.rules.trial.toolsets", id="quotas"),
        pytest.param(RULE, "authorization.rules.0.what.toolsets", id="rules"),
    ],
)
def test_a_rule_about_a_tool_set(cli: CommandLine, rule: str, setting: str) -> None:
    """A rule for an unknown tool set is reported; one for a known set is not."""
    cli.write("till.py", dedent(CODE))
    cli.write("axolotl.toml", dedent(rule).format(toolset="billing"))
    answer = cli("check", "till")
    assert (answer.code, answer.stdout) == (0, "till: 1 tool, no problems\n")
    cli.write("axolotl.toml", dedent(rule).format(toolset="biling"))
    answer = cli("check", "till")
    assert answer.code == 0
    assert f"Setting {setting}: there is no tool set 'biling'; did you mean 'billing'? (axolotl.toml:" in answer.stdout
    assert cli("check", "till", "--strict").code == 2


NAMES = """\
[toolsets.biling]
timeout_seconds = 1

[approval]
tools = ["pay", "pya"]

[quotas.rules.trial]
rate_per_second = 1
tools = [
    "pay",
    "refund_*",
]

[auth.api_keys.till]
hash = "sha256:{hash}"
roles = ["clerk"]
scopes = ["money"]

[[authorization.rules]]
name = "clerks"
effect = "allow"
who.roles = ["clark"]
who.scopes = ["money", "mony"]

[[authorization.rules]]
name = "others"
effect = "allow"
[authorization.rules.what]
names = ["p*", "PAY", "pai"]
tags = ["urgent"]
toolsets = ["billing", "till"]

[[authorization.rules]]
name = "pages"
effect = "deny"
what.kinds = ["prompt"]
"""

FINDINGS = (
    "Setting toolsets.biling: there is no tool set 'biling'; did you mean 'billing'? (axolotl.toml:1)",
    "Setting approval.tools: there is no tool 'pya'; known: pay (axolotl.toml:5)",
    "Setting quotas.rules.trial.tools: no tool, prompt or resource matches 'refund_*'; known: pay (axolotl.toml:9)",
    "Setting authorization.rules.0.who.roles: no API key has the role 'clark'; did you mean 'clerk'? (axolotl.toml:22)",
    "Setting authorization.rules.0.who.scopes: no API key has the scope 'mony'; did you mean 'money'? "
    "(axolotl.toml:23)",
    "Setting authorization.rules.1.what.names: there is no tool, prompt or resource 'pai'; known: pay "
    "(axolotl.toml:29)",
    "Setting authorization.rules.1.what.toolsets: there is no tool set 'till'; known: billing (axolotl.toml:31)",
    "Setting authorization.rules.1.what.tags: there is no tag 'urgent' (axolotl.toml:30)",
    "Rule 'pages' of authorization matches no feature of this server: check the names in it (axolotl.toml:33)",
)


def test_names_that_nothing_has(cli: CommandLine) -> None:
    """Every name in a rule or setting that nothing has is reported with its place, also next to a correct one."""
    cli.write("till.py", dedent(CODE))
    cli.write("axolotl.toml", NAMES.format(hash="a" * 64))
    findings = json.loads(cli("check", "till", "--json").stdout)["findings"]
    assert [one["message"] for one in findings] == [*FINDINGS]


def test_roles_of_tokens_are_not_known(cli: CommandLine) -> None:
    """With an issuer, callers may have any role and scope."""
    cli.write("till.py", dedent(CODE))
    issuer = 'resource = "https://till.example"\nissuers = ["https://login.example"]\n'
    cli.write("axolotl.toml", f"[auth]\n{issuer}\n{NAMES.format(hash='a' * 64)}")
    assert "API key" not in cli("check", "till").stdout


def test_a_tool_set_that_is_not_served(cli: CommandLine) -> None:
    """A rule for a tool set that was not selected names a set that exists."""
    cli.write("till.py", dedent(CODE) + "\n    other = providers.Container(Billing)\n")
    cli.write("axolotl.toml", dedent(RULE).format(toolset="billing"))
    assert "there is no tool set" not in cli("check", "till", "--toolset", "other").stdout


EXTENSION = """

    from axolotl_server.extension import Extension


    class Till(Extension):
        identifier = "com.example/till"

        async def open(self, arguments, context):
            return {}

        @property
        def methods(self):
            return {"till/open": self.open}


    Container.extensions = providers.List(providers.Singleton(Till))
"""


def test_rules_about_methods_of_extensions(cli: CommandLine) -> None:
    """Methods of extensions are features that rules can match."""
    cli.write("till.py", dedent(CODE) + dedent(EXTENSION))
    quota = "[quotas.rules.a]\nrate_per_second = 1\nkinds = ['extension']\n"
    rules = "[[authorization.rules]]\nname = 'b'\neffect = 'allow'\nwhat.names = ['till/open', 'pay']\n"
    only = "[[authorization.rules]]\nname = 'c'\neffect = 'deny'\nwhat.kinds = ['extension']\n"
    cli.write("axolotl.toml", quota + rules + only)
    answer = cli("check", "till", "--strict")
    assert (answer.code, answer.stdout) == (0, "till: 1 tool, no problems\n")
