from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, Principal, ToolError
from axolotl_server import call_principal


class Database:
    """Stands for a database."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.journal: list[str] = []


# region session
class Session:
    """A unit of work: changes that are not committed are discarded."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes: list[str] = []

    def write(self, row: str) -> None:
        self._changes.append(row)

    async def commit(self) -> None:
        self._database.rows += self._changes
        self._changes = []


@asynccontextmanager
async def open_session(database: Database, principal: Principal) -> AsyncIterator[Session]:
    database.journal.append(f"opened for {principal.subject}")
    try:
        yield Session(database)
    except Exception as error:
        database.journal.append(f"closed after {type(error).__name__}")
        raise
    else:
        database.journal.append("closed")


# endregion session


class Order(BaseModel):
    amount: int = Field(description="The amount to send.")
    to: str = Field(description="The recipient.")


# region tool
class Transfer(ITool[Order, str]):
    name = "transfer"
    description = "Send money to someone."

    def __init__(self, session: Callable[[], AbstractAsyncContextManager[Session]]) -> None:
        self._session = session

    async def execute(self, arguments: Order, context: Context) -> str:
        session = await context.enter(self._session)
        session.write(f"{arguments.amount} to {arguments.to}")
        if arguments.amount > 100:
            raise ToolError("That is too much.")
        await session.commit()
        return "sent"


# endregion tool


# region container
class Container(containers.DeclarativeContainer):
    database = providers.Singleton(Database)
    session = providers.Factory(open_session, database, principal=call_principal)
    tools = providers.List(providers.Singleton(Transfer, session.provider))


# endregion container
