from pathlib import Path

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.resources.skills import skill_folder


@tool
def find_order(number: int) -> str:
    """Find out what was paid for an order."""
    return f"order {number} was paid twice"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(find_order))
    skills = providers.Object(skill_folder(Path(__file__).parent / "skills"))
