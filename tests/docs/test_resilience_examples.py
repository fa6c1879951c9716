"""The examples of the pages about approval, idempotency, retries and circuit breakers."""

import importlib
import tomllib
from collections.abc import Mapping
from typing import Any

from dependency_injector import containers

from axolotl_core.policies.tool_rules import retry_hazards
from axolotl_server import connect
from axolotl_server.client.replies import Question
from axolotl_server.settings.calls import ApprovalSettings, IdempotencySettings
from tests.support.docs.pages import EXAMPLES, read_page


def guarded(name: str) -> containers.DynamicContainer:
    """Return the container of an example."""
    return importlib.import_module(name).Container()  # type: ignore[no-any-return]


async def test_approving() -> None:
    """Both tools ask: one as shown on the page, one with its own message and selected arguments."""
    asked: list[str] = []

    def answer(question: Question) -> Mapping[str, Any]:
        asked.append(question.message)
        return {"approve": len(asked) > 1}

    example = importlib.import_module("approving")
    async with connect(guarded("approving"), answer=answer) as client:
        refused = await client.call("delete", {"project": "atlas", "password": "swordfish"})
        assert refused.text == "The user did not approve this call; it did not run"
        renamed = await client.call("rename", {"project": "atlas", "name": "zenith", "trace": "x"})
        assert renamed.text == "renamed atlas to zenith"
    assert {"zenith", "borealis"} == example.PROJECTS
    assert f"```text\n{asked[0]}\n```" in read_page("docs/operate/approval.md")
    assert asked[1] == 'Rename this project for everyone?\nTool: rename\nproject: "atlas"\nname: "zenith"'
    async with connect(guarded("approving")) as client:
        refused = await client.call("delete", {"project": "zenith", "password": "swordfish"})
        assert refused.text in read_page("docs/operate/approval.md")


async def test_paying() -> None:
    """A payment with the same id, and an order with the same arguments, is made once."""
    example = importlib.import_module("paying")
    async with connect(guarded("paying")) as client:
        for _ in range(2):
            assert (await client.call("pay", {"payment_id": "p1", "euros": 5})).text == "paid 5 €"
        reused = await client.call("pay", {"payment_id": "p1", "euros": 7})
        assert reused.meta["axolotl/reason"] == "key_reused"
        for _ in range(2):
            outcome = await client.call("order", {"article": "tea", "pieces": 2})
            assert outcome.structured == {"ordered": 2}
        assert outcome.meta["axolotl/replayed"] is True
    assert example.PAID == [5, 2]


async def test_upstream() -> None:
    """A bank that is down is tried three times per call until the breaker opens; unknown currencies do not count."""
    container = guarded("upstream")
    bank = container.bank()
    async with connect(container) as client:
        bank.down = True
        outcomes = [await client.call("rate", {"currency": "CHF"}) for _ in range(3)]
        assert [outcome.meta.get("axolotl/reason") for outcome in outcomes] == [
            "tool_error",
            "tool_error",
            "circuit_open",
        ]
        assert bank.asked == 6
    bank.down = False
    async with connect(container) as client:
        for _ in range(5):
            assert (await client.call("rate", {"currency": "XXX"})).text == "Unknown currency: XXX"
        assert (await client.call("rate", {"currency": "CHF"})).structured == 0.93
    (tool,) = container.tools()
    assert [*retry_hazards(tool, "loop")] == []


def test_settings() -> None:
    """The settings on the pages are valid."""
    said = tomllib.loads((EXAMPLES / "resilience.toml").read_text(encoding="utf-8"))
    assert ApprovalSettings(**said["approval"]).required_for == "destructive"
    assert IdempotencySettings(**said["idempotency"]).on_store_failure == "closed"
