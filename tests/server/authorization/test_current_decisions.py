"""Each call is decided on by the present rules, principal and scopes."""

from typing import Any

from axolotl_core import Principal, tool
from axolotl_core.errors import InvalidToken
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.access import Decision, IAuthorizer, ITokenVerifier
from axolotl_server import ServerHost
from tests.support.servers.authenticated_server import bearer, called, container, gated
from tests.support.servers.restricted_servers import ADA, GUESTS, ROOT, Speaker, offering, speaking

CLERKS = {"rules": [{"name": "clerks", "effect": "allow", "who": {"roles": ["clerk"]}}]}


async def may(speaker: Speaker, name: str = "look") -> bool:
    """Call a tool, and tell whether it ran."""
    reply = await speaker.ask("tools/call", {"name": name, "arguments": {"amount": 1} if name == "refund" else {}})
    return "error" not in reply and not reply["result"].get("isError")


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


async def test_another_policy_decides_anew() -> None:
    """A server with other settings does not know the decisions of the one before."""
    for rules, allowed in ((GUESTS, True), ({"default": "deny", "rules": []}, False), (GUESTS, True)):
        async with speaking(rules, ADA) as speaker:
            assert [await may(speaker), await may(speaker)] == [allowed, allowed]


async def test_roles_that_can_change() -> None:
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
    """A policy of the user may depend on anything, so it is asked for every call."""
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
