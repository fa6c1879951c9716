from collections.abc import Mapping
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations
from axolotl_core.protocol.identity import Icon


# region tool
class Account(BaseModel):
    tenant: str = Field(description="The tenant that owns the account.", json_schema_extra={"x-mcp-header": "Tenant"})
    number: int = Field(description="The account's number.", ge=1, examples=[7])


class CloseAccount(ITool[Account, None]):
    name = "close_account"
    title = "Close an account"
    description = "Close an account permanently."
    annotations = ToolAnnotations(read_only=False, destructive=True, idempotent=True, open_world=False)
    icons = (Icon("https://example.com/close.png", "image/png", ("48x48",)),)
    meta: Mapping[str, Any] = {"example.com/team": "billing"}

    timeout_seconds = 5.0
    max_concurrency = 2

    async def execute(self, arguments: Account, context: Context) -> None:
        """Do nothing: this is an example."""


# endregion tool


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(CloseAccount))
