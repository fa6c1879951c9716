import asyncio

from dependency_injector import containers, providers

from axolotl_core import CacheHint, Context, resource
from axolotl_server import connect


@resource("tariffs://current", cache=CacheHint(ttl_seconds=3600, scope="public"))
async def tariffs() -> dict[str, int]:
    """The same for everyone and rarely changed: any cache may keep it for an hour."""
    return {"letter": 1, "parcel": 6}


@resource("invoices://mine", cache=CacheHint(ttl_seconds=60))
async def invoices(context: Context) -> str:
    """Depends on the caller: a client may keep it for a minute, for this caller only."""
    return f"the invoices of {context.principal.subject}"


@resource("clock://now")
async def clock() -> str:
    """Has no hint of its own, so the settings decide. By default it is not cached."""
    return "now"


class Container(containers.DeclarativeContainer):
    settings = providers.Object({"caching": {"list_ttl_seconds": 300, "scope": "public"}})
    resources = providers.List(providers.Object([tariffs, invoices, clock]))


async def main() -> None:
    async with connect(Container()) as client:
        for uri in ("tariffs://current", "invoices://mine", "clock://now"):
            print(uri, (await client.read_resource(uri)).cache)
        listed = await client.request("resources/list", {})
        print("resources/list", listed["ttlMs"], listed["cacheScope"])


if __name__ == "__main__":
    asyncio.run(main())
