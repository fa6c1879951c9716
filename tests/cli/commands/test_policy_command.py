"""`axolotl policy explain`."""

import json
from textwrap import dedent
from typing import Any

import pytest

from tests.cli.conftest import CommandLine

SERVER = """
    from dependency_injector import containers, providers

    from axolotl_core import prompt, resource, tool
    from axolotl_core.policies.access import Decision, IAuthorizer


    @tool(tags=frozenset({"money"}))
    async def refund() -> str:
        \"\"\"Pay back.\"\"\"
        return ""


    @tool(scopes=frozenset({"vault", "keys"}))
    async def unlock() -> str:
        \"\"\"Open the vault.\"\"\"
        return ""


    @prompt
    async def greet() -> str:
        \"\"\"Greet.\"\"\"
        return ""


    @resource("files://{name}")
    async def files(name: str) -> str:
        \"\"\"Read a file.\"\"\"
        return name


    class Moody(IAuthorizer):
        async def decide(self, principal, spec):
            return Decision(principal.claims.get("mood") == "good", "mood", "the mood decides")


    class Container(containers.DeclarativeContainer):
        tools = providers.Object([refund, unlock])
        prompts = providers.Object([greet])
        resources = providers.Object([files])


    class Own(Container):
        authorizer = providers.Singleton(Moody)
"""

SETTINGS = """
    target = "server.py:Container"

    [[authorization.rules]]
    name = "clerks"
    effect = "allow"
    who = { roles = ["clerk"], tenants = ["acme"] }

    [[authorization.rules]]
    name = "no money for beginners"
    effect = "deny"
    who = { scopes = ["beginner"] }
    what = { tags = ["money"] }
"""
CLERK = '{"subject": "ada", "roles": ["clerk"], "tenant": "acme"}'


@pytest.fixture
def policy(cli: CommandLine) -> CommandLine:
    """Write a server with a policy to the directory of the commands."""
    cli.write("server.py", dedent(SERVER))
    cli.write("axolotl.toml", dedent(SETTINGS))
    return cli


def explain(cli: CommandLine, *words: str) -> tuple[int, Any]:
    answer = cli("policy", "explain", *words, "--json")
    return answer.code, json.loads(answer.stdout)


def test_allowed(policy: CommandLine) -> None:
    """The deciding rule is named, the others with the reason why they do not match; the exit code is 0."""
    answer = policy("policy", "explain", "--as", CLERK, "REFUND")
    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert lines[0] == "ada may use the tool refund"
    assert lines[1] == "allowed by: clerks (a rule in the settings: allow)"
    assert "clerks allow yes, and decides" in lines
    assert "no money for beginners deny no: the principal lacks the scopes beginner" in lines
    assert not any("reported as" in line for line in lines)


def test_denied(policy: CommandLine) -> None:
    """A rule that denies decides although others allow, the reported error is named, and the exit code is 1."""
    principal = json.dumps({"subject": "ada", "tenant": "acme", "roles": ["clerk"], "scopes": ["beginner"]})
    answer = policy("policy", "explain", "--as", principal, "refund")
    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert answer.code == 1
    assert lines[0] == "ada may not use the tool refund"
    assert lines[1].startswith("denied by: no money for beginners")
    assert lines[2] == "reported as: not_found"
    assert "clerks allow yes" in lines
    assert "no money for beginners deny yes, and decides" in lines


def test_json(policy: CommandLine) -> None:
    """The JSON has everything."""
    code, verdict = explain(policy, "--as", '{"subject": "bob", "scopes": ["beginner", "b"]}', "refund")
    assert code == 1
    assert verdict["principal"] == {"subject": "bob", "tenant": None, "scopes": ["b", "beginner"], "roles": []}
    assert (verdict["allowed"], verdict["rule"]) == (False, "no money for beginners")
    assert verdict["rules"][0] == {
        "rule": "clerks",
        "effect": "allow",
        "matches": False,
        "decides": False,
        "why_not": "the tenant is not one of acme; the principal has none of the roles clerk",
    }


@pytest.mark.parametrize(
    ("words", "code", "rule"),
    [
        (["--as", CLERK, "unlock"], 1, "scopes of the tool"),
        (["--as", CLERK.replace("}", ', "scopes": ["vault", "keys"]}'), "unlock"], 0, "clerks"),
        (["--as", "ada", "greet", "--kind", "prompt"], 1, "default"),
        (["--as", "ada", "greet"], 1, "default"),
        (["--as", "ada", "files"], 1, "default"),
        (["--as", "ada", "files://a"], 1, "default"),
        (["--as", CLERK, "greet", "--kind", "prompt"], 0, "clerks"),
        (["--as", "ada", "files://a", "--kind", "resource"], 1, "default"),
        (["--as", "ada", "files://{name}", "--kind", "resource"], 1, "default"),
    ],
)
def test_what_decides(words: list[str], code: int, rule: str, policy: CommandLine) -> None:
    """Scopes, rules and the default can decide, on tools, prompts and resources."""
    ended, verdict = explain(policy, *words)
    assert (ended, verdict["rule"]) == (code, rule)


@pytest.mark.parametrize(("mood", "code"), [("good", 0), ("bad", 1)])
def test_custom_authorizer(mood: str, code: int, policy: CommandLine) -> None:
    """The container's authorizer decides, also with claims; it has no rules to show."""
    policy.write("axolotl.toml", 'target = "server.py:Own"\n')
    principal = json.dumps({"subject": "ada", "claims": {"mood": mood}})
    ended, verdict = explain(policy, "--as", principal, "refund")
    assert (ended, verdict["rule"], verdict["reason"], verdict["rules"]) == (code, "mood", "the mood decides", [])


def test_off(policy: CommandLine) -> None:
    """Without a policy everyone may use everything, and the output says so."""
    policy.write("axolotl.toml", "")
    answer = policy("policy", "explain", "--as", "ada", "--target", "server.py:Container", "refund")
    assert answer.code == 0
    assert "allowed by: authorization is off" in answer.stdout


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--as", "ada", "refnud"], 3, "There is no tool, prompt or resource 'refnud'; did you mean 'refund'?"),
        (["--as", "ada", "refund", "--kind", "prompt"], 3, "There is no prompt 'refund'"),
        (["--as", '{"subject": "ada", "role": []}', "refund"], 2, "role: Extra inputs are not permitted"),
        (["--as", "{", "refund"], 2, "this is not JSON"),
        (["--as", '{"roles": []}', "refund"], 2, "subject: Field required"),
        (["refund"], 2, "--as"),
        (["--as", "ada", "--target", "nowhere:Container", "refund"], 2, "nowhere"),
    ],
)
def test_mistakes(words: list[str], code: int, problem: str, policy: CommandLine) -> None:
    """Errors are reported on one line, with their own exit code."""
    answer = policy("policy", "explain", *words)
    assert answer.code == code
    assert problem in " ".join(answer.stderr.replace("│", " ").split())


def test_a_wrong_rule(policy: CommandLine) -> None:
    """An error in the settings is reported with its place."""
    policy.write("axolotl.toml", '[[authorization.rules]]\nname = "x"\neffect = "alow"\n')
    answer = policy("policy", "explain", "--as", "ada", "--target", "server.py:Container", "refund")
    assert answer.code == 2
    assert "authorization.rules.0.effect: Input should be 'allow' or 'deny'" in answer.stderr
