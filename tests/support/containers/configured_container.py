"""A container whose configuration comes from pydantic settings, which dependency_injector recognizes by their class."""

from dependency_injector import containers, providers
from dependency_injector.wiring import is_excluded_from_inspect
from pydantic_settings import BaseSettings
from starlette.requests import Request

from axolotl_core import tool


class Options(BaseSettings):
    greeting: str = "hello"


@tool
def report() -> dict[str, object]:
    """Report what dependency_injector recognizes."""
    try:
        providers.Configuration().from_pydantic("text")  # type: ignore[arg-type]
    except Exception as error:
        refusal = str(error)
    return {
        "greeting": Container().config.greeting(),
        "refusal": refusal,
        "excluded": [is_excluded_from_inspect(one) for one in (Request, Options, 1)],
    }


class Container(containers.DeclarativeContainer):
    config = providers.Configuration(pydantic_settings=[Options(), Options])
    tools = providers.List(providers.Object(report))
