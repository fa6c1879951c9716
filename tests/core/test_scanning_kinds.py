"""scan, scan_prompts and scan_resources: one mechanism, each with its own kind."""

from collections.abc import Callable
from typing import Any

import pytest

from axolotl_core import ConfigurationError, scan
from axolotl_core.features.feature import IFeature
from axolotl_core.scanning import scan_prompts, scan_resources
from tests.support.core.scanned_packages import MakePackage

MIXED = """
OpenT = TypeVar("OpenT")

@tool
def a_tool() -> str: ...

class PromptClass(IPrompt[NoArguments]):
    name = "prompt-class"

    def __init__(self, words: Any) -> None:
        self.held = words

    async def render(self, arguments: NoArguments, context: Context) -> str: ...

class OpenPrompt(IPrompt[OpenT], Generic[OpenT]):
    async def render(self, arguments: OpenT, context: Context) -> str: ...

class Variables(BaseModel):
    x: str

class TemplateClass(IResourceTemplate[Variables]):
    name = "template-class"
    uri_template = "a://{x}/class"

    async def read(self, variables: Variables, context: Context) -> str: ...

@resource("a://function")
def fixed_function() -> str: ...

@prompt
def prompt_function() -> str: ...

@resource("a://{x}")
def template_function(x: str) -> str: ...

class AbstractResource(IResource):
    name = "abstract"

class ResourceClass(AbstractResource):
    name = "resource-class"
    uri = "a://class"

    def __init__(self, store: Any) -> None:
        self.held = store

    async def read(self, context: Context) -> str: ...

class ToolClass(ITool[NoArguments, str]):
    name = "tool-class"

    def __init__(self, clock: Any) -> None:
        self.held = clock

    async def execute(self, arguments: NoArguments, context: Context) -> str: ...

class Desk:
    @prompt
    def method(self) -> str: ...

alias = prompt_function
made = PromptClass("made")
"""
Scan = Callable[..., tuple[IFeature, ...]]


@pytest.mark.parametrize(
    ("collect", "dependencies", "found"),
    [
        pytest.param(scan, {"clock": 1}, ["a_tool", "tool-class"], id="tools"),
        pytest.param(scan_prompts, {"words": 1}, ["prompt-class", "prompt_function"], id="prompts"),
        pytest.param(
            scan_resources,
            {"store": 1},
            ["template-class", "fixed_function", "template_function", "resource-class"],
            id="resources",
        ),
    ],
)
def test_each_scan_finds_its_own_kind(
    package: MakePackage, collect: Scan, dependencies: dict[str, Any], found: list[str]
) -> None:
    """Kinds may be mixed in a module; each scan needs the dependencies of its own kind only."""
    package({"scanned_mixed/__init__.py": "", "scanned_mixed/all.py": MIXED})
    features = collect("scanned_mixed", **dependencies, unused=2)
    assert [feature.name for feature in features] == found
    assert [feature.held for feature in features if hasattr(feature, "held")] == [1]


@pytest.mark.parametrize(
    ("collect", "kind", "needs"),
    [
        pytest.param(scan, "ToolClass", "clock", id="scan"),
        pytest.param(scan_prompts, "PromptClass", "words", id="scan_prompts"),
        pytest.param(scan_resources, "ResourceClass", "store", id="scan_resources"),
    ],
)
def test_each_scan_names_itself_where_something_is_missing(
    package: MakePackage, collect: Scan, kind: str, needs: str, request: pytest.FixtureRequest
) -> None:
    """The error contains the function that was called."""
    name = request.node.callspec.id
    package({"scanned_lacking.py": MIXED})
    with pytest.raises(ConfigurationError) as refused:
        collect("scanned_lacking")
    assert str(refused.value) == f"scanned_lacking.{kind} needs {needs}=…: pass it to {name}(…)"
    with pytest.raises(ConfigurationError) as missing:
        collect("scanned_nowhere")
    assert str(missing.value) == f"{name}('scanned_nowhere'): module 'scanned_nowhere' does not exist"


@pytest.mark.parametrize("collect", [scan, scan_prompts, scan_resources])
def test_imports_and_second_names_count_once_in_every_scan(package: MakePackage, collect: Scan) -> None:
    """A feature belongs to the module that defines it."""
    everything: dict[str, Any] = {"clock": 1, "words": 1, "store": 1}
    package(
        {
            "scanned_shared/__init__.py": "from scanned_shared.all import *",
            "scanned_shared/all.py": MIXED,
            "scanned_shared/more.py": "from scanned_shared.all import *",
        }
    )
    assert len(collect("scanned_shared", **everything)) == len(collect("scanned_shared.all", **everything))
    assert collect("scanned_shared.more", **everything) == ()
