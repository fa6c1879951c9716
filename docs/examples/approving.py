from typing import Annotated

from dependency_injector import containers, providers

from axolotl_core import ToolAnnotations, tool
from axolotl_core.policies.audit import Sensitive
from axolotl_core.policies.tool_rules import Approval

PROJECTS = {"atlas", "borealis"}


# region tool
@tool(annotations=ToolAnnotations(destructive=True), requires_approval=True)
async def delete(project: str, password: Annotated[str, Sensitive]) -> str:
    """Delete a project."""
    PROJECTS.discard(project)
    return f"deleted {project}"


# endregion tool


# region rule
@tool(requires_approval=Approval("Rename this project for everyone?", arguments=("project", "name")))
async def rename(project: str, name: str, trace: str = "") -> str:
    """Rename a project."""
    PROJECTS.discard(project)
    PROJECTS.add(name)
    return f"renamed {project} to {name}"


# endregion rule


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object([delete, rename]))
