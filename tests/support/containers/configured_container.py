"""A container whose configuration comes from pydantic settings and from YAML files."""

import tempfile

from dependency_injector import containers, providers
from dependency_injector.wiring import is_excluded_from_inspect
from pydantic_settings import BaseSettings
from starlette.requests import Request

from axolotl_core import tool


class CustomLoader(providers.YamlLoader):
    """A subclass that calls its superclass."""

    def construct_document(self, node: object) -> object:
        return {"custom": super().construct_document(node)}


class Options(BaseSettings):
    greeting: str = "hello"


@tool
def report() -> dict[str, object]:
    """Report what dependency_injector recognizes."""
    try:
        providers.Configuration().from_pydantic("text")  # type: ignore[arg-type]
    except Exception as error:
        refusal = str(error)
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("answer: 42")
        file.flush()
        plain, custom = providers.Configuration(yaml_files=[file.name]), providers.Configuration()
        plain.load()
        custom.from_yaml(file.name, loader=CustomLoader)
    return {
        "plain": plain(),
        "custom": custom(),
        "greeting": Container().config.greeting(),
        "refusal": refusal,
        "excluded": [is_excluded_from_inspect(one) for one in (Request, Options, 1)],
    }


class Container(containers.DeclarativeContainer):
    config = providers.Configuration(pydantic_settings=[Options(), Options])
    tools = providers.List(providers.Object(report))
