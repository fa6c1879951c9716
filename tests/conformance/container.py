"""The server under test: a normal container with everything that the conformance suite calls by name."""

from pathlib import Path

from dependency_injector import containers, providers

from axolotl_core import PromptRegistry, ToolRegistry
from axolotl_core.resources.skills import skill_folder
from tests.conformance.asking import ASKING_TOOLS
from tests.conformance.changing import TriggerPromptChange, TriggerToolChange
from tests.conformance.prompts import PROMPTS
from tests.conformance.resources import RESOURCES
from tests.conformance.settings import SETTINGS
from tests.conformance.speaking import SPEAKING_TOOLS
from tests.conformance.tasks import TASK_TOOLS
from tests.conformance.tools import CONTENT_TOOLS


class Container(containers.DeclarativeContainer):
    """Every fixture of the suite, and the registries that some of them change."""

    settings = providers.Object(SETTINGS)
    tool_registry = providers.Singleton(ToolRegistry)
    prompt_registry = providers.Singleton(PromptRegistry)

    tools = providers.List(
        providers.Object(CONTENT_TOOLS),
        providers.Object(SPEAKING_TOOLS),
        providers.Object(ASKING_TOOLS),
        providers.Object(TASK_TOOLS),
        providers.Singleton(TriggerToolChange, tool_registry),
        providers.Singleton(TriggerPromptChange, prompt_registry),
    )
    prompts = providers.List(providers.Object(PROMPTS))
    resources = providers.List(providers.Object(RESOURCES))
    skills = providers.List(providers.Object(skill_folder(Path(__file__).parent / "skills")))
