import asyncio

from dependency_injector import containers, providers

from axolotl_core import Principal, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.access import Decision, IAuthorizer
from axolotl_server import connect


# region authorizer
class Owners:
    """A service of yours that knows who owns which tag."""

    async def tags_of(self, subject: str) -> set[str]:
        return {"ada": {"billing"}, "bob": {"billing", "stock"}}.get(subject, set())


class ByOwner(IAuthorizer):
    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        owned = await self._owners.tags_of(principal.subject)
        shared = owned & spec.feature.tags
        return Decision(bool(shared), "ownership", f"owns {', '.join(sorted(owned)) or 'nothing'}")


# endregion authorizer


@tool(tags=frozenset({"billing"}))
async def send_invoice() -> str:
    """Send an invoice."""
    return "sent"


@tool(tags=frozenset({"stock"}))
async def order_bolts() -> str:
    """Order bolts."""
    return "ordered"


class Container(containers.DeclarativeContainer):
    owners = providers.Singleton(Owners)
    authorizer = providers.Singleton(ByOwner, owners)
    settings = providers.Object({"authorization": {"denied_as": "forbidden"}})
    tools = providers.List(providers.Object(send_invoice), providers.Object(order_bolts))


async def main() -> None:
    for subject in ("ada", "bob", "eve"):
        async with connect(Container(), principal=Principal(subject)) as client:
            print(subject, [tool["name"] for tool in await client.list_tools()])
            print("   ", (await client.call("order_bolts")).text)


if __name__ == "__main__":
    asyncio.run(main())
