from collections.abc import MutableMapping
from typing import Any

from dependency_injector import containers, providers
from fastapi import FastAPI, Request, Response

from axolotl_core import Context, Principal, tool
from axolotl_server import MountedApp

SESSIONS = {"cookie-of-ada": "ada"}


@tool
async def whoami(context: Context) -> str:
    """Tell who is calling."""
    return context.principal.subject


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(whoami))


async def principal_of(scope: MutableMapping[str, Any]) -> Principal | None:
    user = scope["state"].get("user")
    return None if user is None else Principal(user)


mcp = MountedApp(Container, settings={"server": {"name": "shop"}}, principal=principal_of)
app = FastAPI(lifespan=mcp.lifespan)
app.mount("/tools", mcp)


@app.middleware("http")
async def authenticate(request: Request, call_next: Any) -> Response:
    request.state.user = SESSIONS.get(request.cookies.get("session", ""))
    response: Response = await call_next(request)
    return response


@app.get("/")
async def home() -> str:
    return "The tools are at /tools/mcp"
