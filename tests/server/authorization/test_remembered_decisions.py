"""Decisions of the rules are remembered per principal and feature, and never used for anything else."""

from typing import Any

import pytest

from axolotl_core import FeatureSpec, InvalidToken, ITokenVerifier, Principal, tool
from axolotl_core.policies.access import Decision, IAuthorizer
from axolotl_server import ServerHost
from axolotl_server.authorization import authorization as authorization_module
from axolotl_server.authorization.rules import DefaultAuthorizer
from tests.support.servers.authenticated_server import bearer, called, container, gated
from tests.support.servers.restricted_servers import ADA, GUESTS, ROOT, Speaker, offering, speaking

CLERKS = {"rules": [{"name": "clerks", "effect": "allow", "who": {"roles": ["clerk"]}}]}
ERAS = pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])


class Judged(list[tuple[str, str]]):
    """The subjects and features that the rules were applied to."""


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """Count how often the rules are applied."""
    made, judge = Judged(), DefaultAuthorizer.judge

    def counted(self: DefaultAuthorizer, principal: Principal, spec: FeatureSpec) -> Decision:
        made.append((principal.subject, spec.name))
        return judge(self, principal, spec)

    monkeypatch.setattr(DefaultAuthorizer, "judge", counted)
    return made


async def may(speaker: Speaker, name: str = "look") -> bool:
    """Call a tool, and tell whether it ran."""
    reply = await speaker.ask("tools/call", {"name": name, "arguments": {"amount": 1} if name == "refund" else {}})
    return "error" not in reply and not reply["result"].get("isError")


@ERAS
async def test_the_rules_are_applied_once_per_feature(handshake: bool, judged: Judged) -> None:
    """Repeated calls of a feature apply the rules once, whether they allow or deny it."""
    async with speaking(GUESTS, ADA, handshake=handshake) as speaker:
        assert [await may(speaker) for _ in range(5)] == [True] * 5
        assert judged == [("ada", "look")]
        assert [await may(speaker, "note") for _ in range(5)] == [False] * 5
    assert judged.count(("ada", "note")) <= 2  # once for the call, once for the suggestion of another name
    assert judged.count(("ada", "look")) <= 2


async def test_principals_are_told_apart() -> None:
    """Principals with the same subject get decisions of their own."""
    stranger = Principal(ADA.subject, ADA.tenant)
    async with ServerHost(offering(), flags={"authorization": CLERKS}) as host:
        speakers = [Speaker(host, one) for one in (ADA, stranger, ROOT)]
        assert [[await may(one) for one in speakers] for _ in range(2)] == [[True, False, False]] * 2
        for speaker in speakers:
            await speaker.close()


async def test_a_principal_never_inherits_the_identity_of_another() -> None:
    """Principals that come and go, as with short-lived tokens, never get a decision that was made for another."""
    async with ServerHost(offering(), flags={"authorization": CLERKS}) as host:
        for number in range(200):
            roles = frozenset({"clerk"}) if number % 2 else frozenset({"guest"})
            speaker = Speaker(host, Principal("ada", roles=roles))
            assert await may(speaker) is bool(number % 2)
            await speaker.close()
            del speaker


async def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch, judged: Judged) -> None:
    """When the table is full, decisions are made again; they stay right."""
    monkeypatch.setattr(authorization_module, "MAX_REMEMBERED", 3)
    async with ServerHost(offering(), flags={"authorization": CLERKS}) as host:
        speakers = [Speaker(host, Principal(str(number), roles=frozenset({"clerk"}))) for number in range(8)]
        for _ in range(2):
            assert all([await may(speaker) for speaker in speakers])
        assert len(judged) > len(speakers)
        for speaker in speakers:
            await speaker.close()


async def test_another_policy_decides_anew() -> None:
    """A server with other settings does not know the decisions of the one before."""
    for rules, allowed in ((GUESTS, True), ({"default": "deny", "rules": []}, False), (GUESTS, True)):
        async with speaking(rules, ADA) as speaker:
            assert [await may(speaker), await may(speaker)] == [allowed, allowed]


async def test_roles_that_can_change_are_not_remembered() -> None:
    """A verifier may build a principal with a plain set; its decisions follow the set."""
    roles: Any = {"clerk"}
    async with speaking(CLERKS, Principal("ada", roles=roles)) as speaker:
        assert await may(speaker)
        roles.clear()
        assert not await may(speaker)


async def test_scopes_of_a_tool_apply_from_the_next_call_on() -> None:
    """A tool that begins to require a scope is refused to callers that used it before."""

    @tool
    async def ledger() -> str:
        """Show the ledger."""
        return "much"

    rules = {"rules": [{"name": "all", "effect": "allow"}]}
    async with speaking(rules, ADA, container=offering(tools=(ledger,))) as speaker:
        assert await may(speaker, "ledger")
        ledger.scopes = frozenset({"audit"})
        assert not await may(speaker, "ledger")
        ledger.scopes = frozenset()
        assert await may(speaker, "ledger")


class Asked(IAuthorizer):
    """Counts the questions, and allows every other one."""

    def __init__(self) -> None:
        self.times = 0

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        self.times += 1
        return Decision(self.times % 2 == 1, "every other one")


async def test_an_authorizer_of_the_container_is_asked_every_time() -> None:
    """A policy of the user may depend on anything, so its decisions are not remembered."""
    authorizer = Asked()
    async with speaking({"denied_as": "forbidden"}, ADA, container=offering(authorizer=authorizer)) as speaker:
        assert [await may(speaker) for _ in range(4)] == [True, False, True, False]
    assert authorizer.times == 4


class Expiring(ITokenVerifier):
    """Knows one token: first it is a clerk's, then it has lost its role, then it has expired."""

    def __init__(self) -> None:
        self.times = 0

    async def verify(self, token: str) -> Principal:
        self.times += 1
        if self.times > 2:
            raise InvalidToken("the token has expired")
        return Principal("ada", roles=frozenset({"clerk"} if self.times == 1 else ()), claims={"exp": 1})


async def test_a_decision_does_not_outlive_its_token() -> None:
    """The same token with fewer roles is denied, and after its expiry it is refused before any decision."""
    verifier = Expiring()
    async with gated({}, container(token_verifier=verifier), authorization=CLERKS) as server:
        replies = [await called(server, "whoami", bearer("one")) for _ in range(3)]
    assert verifier.times == 3
    assert b'"result"' in replies[0].body
    assert b"Tool not found" in replies[1].body
    assert replies[2].status == 401
