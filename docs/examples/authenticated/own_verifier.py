import asyncio

from dependency_injector import containers, providers
from ledger import book
from trying import call, reaching

from axolotl_core import Principal
from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_server import ServerHost, make_app


# region verifier
class Badges:
    """A service of yours that knows who holds which badge."""

    async def find(self, badge: str) -> dict[str, str] | None:
        return {"badge-7": {"name": "ada", "department": "treasury"}}.get(badge)


class BadgeVerifier(ITokenVerifier):
    def __init__(self, badges: Badges) -> None:
        self._badges = badges

    async def verify(self, token: str) -> Principal:
        holder = await self._badges.find(token)
        if holder is None:
            raise InvalidToken("unknown badge")
        return Principal(holder["name"], holder["department"], frozenset({"ledger:write"}))


class Container(containers.DeclarativeContainer):
    badges = providers.Singleton(Badges)
    token_verifier = providers.Singleton(BadgeVerifier, badges)
    tools = providers.List(providers.Object(book))


# endregion verifier


async def main() -> None:
    async with ServerHost(Container()) as host, reaching(make_app(host)) as client:
        for token in ("badge-7", "badge-8"):
            await call(client, "book", token)


if __name__ == "__main__":
    asyncio.run(main())
