"""The section `authorization`: validation, and when authorization is on."""

from collections.abc import Mapping
from typing import Any

import pytest

from axolotl_core import ConfigurationError, Principal
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import type_of_layer
from axolotl_core.policies.access import Decision, IAuthorizer
from axolotl_server import ServerHost
from axolotl_server.access.authorization import authorization_of
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.policies import AuthorizationSettings, PrincipalSettings
from tests.support.servers.restricted_servers import offering

RULE: Mapping[str, Any] = {"name": "all", "effect": "allow"}


class Everything(IAuthorizer):
    """Allows everything."""

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        return Decision(True, "all")


@pytest.mark.parametrize(
    ("said", "authorizer", "expected"),
    [
        ({}, False, False),
        ({"rules": [RULE]}, False, True),
        ({"rules": []}, False, False),
        ({"default": "deny"}, False, True),
        ({"default": "allow"}, False, True),
        ({"denied_as": "forbidden"}, False, False),
        ({}, True, True),
    ],
)
async def test_when_it_is_on(said: Mapping[str, Any], authorizer: bool, expected: bool) -> None:
    """Authorization is on if there is a policy."""
    container = offering(authorizer=Everything() if authorizer else None)
    async with ServerHost(container, flags={"authorization": said} if said else None) as host:
        assert (host.assembly.tools.authorization is not None) is expected
        layers = [type_of_layer(layer).__name__ for layer in host.assembly.tools.bindings()[0].layers]
        assert ("Authorization" in layers) is expected


async def test_an_authorizer_must_be_one() -> None:
    """The role `authorizer` must provide an IAuthorizer."""
    with pytest.raises(ConfigurationError, match="authorizer returned str; expected IAuthorizer"):
        async with ServerHost(offering(authorizer="everything")):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize("said", [{"rules": [RULE]}, {"default": "deny"}])
def test_two_policies_are_one_too_many(said: Mapping[str, Any]) -> None:
    """Rules in the settings are rejected if the container has an authorizer."""
    with pytest.raises(ConfigurationError, match="two policies"):
        authorization_of(AuthorizationSettings.model_validate(said), Everything())


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"defualt": "deny"}, "Setting authorization.defualt is unknown; did you mean 'default'?"),
        ({"default": "denny"}, "Setting authorization.default: Input should be 'deny' or 'allow'"),
        ({"denied_as": "hidden"}, "Setting authorization.denied_as: Input should be 'forbidden' or 'not_found'"),
        ({"rules": [{**RULE, "whom": {}}]}, "Setting authorization.rules.0.whom is unknown; did you mean 'who'?"),
        (
            {"rules": [RULE, {**RULE, "name": "b", "who": {"role": ["x"]}}]},
            "Setting authorization.rules.1.who.role is unknown; did you mean 'roles'?",
        ),
        ({"rules": [{**RULE, "what": {"readonly": True}}]}, "what.readonly is unknown; did you mean 'read_only'?"),
        (
            {"rules": [{**RULE, "what": {"kinds": ["tol"]}}]},
            "what.kinds.0: Input should be 'tool', 'prompt'",
        ),
        (
            {"rules": [{**RULE, "what": {"kinds": ["completion"]}}]},
            "what.kinds.0: Input should be 'tool', 'prompt'",
        ),
        (
            {"rules": [{**RULE, "effect": "permit"}]},
            "rules.0.effect: Input should be 'allow' or 'deny'",
        ),
        ({"rules": [{"effect": "allow"}]}, "Setting authorization.rules.0.name: Field required"),
        ({"rules": [{**RULE, "who": {"subjects": []}}]}, "Setting authorization.rules.0.who.subjects"),
        ({"rules": [{**RULE, "who": {"subjects": "ada"}}]}, "Setting authorization.rules.0.who.subjects"),
        ({"rules": [RULE, RULE]}, "two rules have the same name: all"),
    ],
)
def test_mistakes(said: Mapping[str, Any], expected: str) -> None:
    """A mistake is reported with its location, and with a suggestion if there is one."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings(flags={"authorization": said})
    assert expected in str(caught.value)


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment can set rules as JSON and single settings as text."""
    monkeypatch.setenv("AXOLOTL_AUTHORIZATION__RULES", '[{"name": "all", "effect": "allow", "who": {"roles": ["x"]}}]')
    monkeypatch.setenv("AXOLOTL_AUTHORIZATION__DENIED_AS", "forbidden")
    monkeypatch.setenv("AXOLOTL_STDIO__PRINCIPAL", '{"subject": "ada", "roles": ["clerk"]}')
    settings = load_settings()
    assert settings.authorization.rules[0].who.roles == frozenset({"x"})
    assert settings.authorization.denied_as == "forbidden"
    assert settings.authorization.has_policy
    assert settings.stdio.principal is not None
    assert settings.stdio.principal.principal == Principal("ada", roles=frozenset({"clerk"}))


def test_authorization_is_off_by_default() -> None:
    """By default authorization is off."""
    assert not load_settings().authorization.has_policy
    assert load_settings().stdio.principal is None


def test_a_principal_of_the_settings() -> None:
    """A principal in the settings has all configured values."""
    said = PrincipalSettings(subject="ada", tenant="acme", scopes=frozenset({"a"}), roles=frozenset({"b"}))
    assert said.principal == Principal("ada", "acme", frozenset({"a"}), frozenset({"b"}))
