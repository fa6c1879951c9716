"""`axolotl check` and rules that match nothing."""

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
    ("section", "rule", "name"),
    [pytest.param("quotas", QUOTA, "trial", id="quotas"), pytest.param("authorization", RULE, "clerks", id="rules")],
)
def test_a_rule_about_a_tool_set(cli: CommandLine, section: str, rule: str, name: str) -> None:
    """A rule for an unknown tool set is reported; one for a known set is not."""
    cli.write("till.py", dedent(CODE))
    cli.write("axolotl.toml", dedent(rule).format(toolset="billing"))
    answer = cli("check", "till")
    assert (answer.code, answer.stdout) == (0, "till: 1 tool, no problems\n")
    cli.write("axolotl.toml", dedent(rule).format(toolset="biling"))
    answer = cli("check", "till")
    assert answer.code == 0
    assert f"Rule '{name}' of {section} matches no feature of this server" in answer.stdout
