from approving import Container

from axolotl_server import connect


async def test_an_approved_call() -> None:
    async with connect(Container(), answer=lambda question: {"approve": True}) as client:
        outcome = await client.call("delete", {"project": "atlas", "password": "swordfish"})
    assert outcome.text == "deleted atlas"


async def test_a_refused_call() -> None:
    async with connect(Container(), answer=lambda question: {"approve": False}) as client:
        outcome = await client.call("delete", {"project": "atlas", "password": "swordfish"})
    assert outcome.meta["axolotl/reason"] == "not_approved"
