"""scan: every tool that a package defines, made with the dependencies it names."""

from textwrap import dedent

import pytest

from axolotl_core import ConfigurationError, scan
from tests.support.core.scanned_packages import MakePackage

TOOL = """
class {kind}(ITool[NoArguments, str]):
    name = "{name}"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return self.name
"""


def tool_class(kind: str, name: str) -> str:
    """Write the source of a tool's class."""
    return TOOL.format(kind=kind, name=name)


def names(package: str, **dependencies: object) -> list[str]:
    """List the names of the tools that are found."""
    return [tool.name for tool in scan(package, **dependencies)]


def test_classes_and_functions_are_found_in_all_modules(package: MakePackage) -> None:
    """The package itself, its modules and its subpackages are searched."""
    package(
        {
            "scanned/__init__.py": tool_class("Root", "root"),
            "scanned/flat.py": '@tool\ndef flat(a: int) -> int:\n    """Flat."""\n    return a\n',
            "scanned/sub/__init__.py": "",
            "scanned/sub/deep.py": tool_class("Deep", "deep"),
        }
    )
    assert names("scanned") == ["root", "flat", "deep"]


def test_a_single_module_can_be_scanned(package: MakePackage) -> None:
    """A module without a package below it is searched alone."""
    package({"scanned_module.py": tool_class("One", "one") + tool_class("Two", "two")})
    assert names("scanned_module") == ["one", "two"]


def test_tools_come_in_the_order_of_their_definition(package: MakePackage) -> None:
    """Classes and functions of a module are mixed as they are written."""
    function = "\n@tool\nasync def middle() -> str:\n    return ''\n"
    package({"scanned_order.py": tool_class("Zed", "zed") + function + tool_class("Abel", "abel")})
    assert names("scanned_order") == ["zed", "middle", "abel"]


def test_abstract_and_generic_classes_are_skipped(package: MakePackage) -> None:
    """Abstract and generic classes are not tools."""
    source = """
    OutT = TypeVar("OutT")

    class Abstract(ITool[NoArguments, str]):
        @abstractmethod
        def more(self) -> str: ...

    class Open(ITool[NoArguments, OutT], Generic[OutT]):
        name = "open"

        async def execute(self, arguments: NoArguments, context: Context) -> OutT:
            raise NotImplementedError

    class Filled(Open[str]):
        name = "filled"
    """
    package({"scanned_abstract.py": source})
    assert names("scanned_abstract") == ["filled"]


def test_imported_names_are_not_counted_twice(package: MakePackage) -> None:
    """A tool belongs to the module that defines it."""
    function = "\n@tool\nasync def shared() -> str:\n    return ''\n"
    package(
        {
            "scanned_imports/__init__.py": "from scanned_imports.a import Owned, shared\n",
            "scanned_imports/a.py": tool_class("Owned", "owned") + function,
            "scanned_imports/b.py": "from scanned_imports.a import Owned as Other, shared as too\n",
        }
    )
    assert names("scanned_imports") == ["owned", "shared"]


def test_an_alias_is_not_a_second_tool(package: MakePackage) -> None:
    """An alias kept for old callers does not make another tool, nor does an instance of a class that is found."""
    function = "\n@tool\nasync def new() -> str:\n    return ''\nold = new\n"
    package({"scanned_alias.py": tool_class("New", "class") + "Old = New\nmade = New()\n" + function})
    assert names("scanned_alias") == ["class", "new"]


def test_dependencies_are_given_by_name(package: MakePackage) -> None:
    """A constructor receives only its parameters; the others have defaults."""
    source = """
    class Needy(ITool[NoArguments, str]):
        name = "needy"

        def __init__(self, repository: Any, *, clock: Any = "default", **rest: Any) -> None:
            self.held = (repository, clock, rest)

        async def execute(self, arguments: NoArguments, context: Context) -> str: ...
    """
    package({"scanned_needs.py": source + dedent(tool_class("Simple", "simple")).replace("\n", "\n    ")})
    needy, simple = scan("scanned_needs", repository="R", unused=1)
    assert getattr(needy, "held", None) == ("R", "default", {})
    assert simple.name == "simple"


def test_a_missing_dependency_is_named(package: MakePackage) -> None:
    """The error contains the class and the missing dependency."""
    source = """
    class Needy(ITool[NoArguments, str]):
        name = "needy"

        def __init__(self, repository: Any, clock: Any) -> None: ...

        async def execute(self, arguments: NoArguments, context: Context) -> str: ...
    """
    package({"scanned_missing.py": source})
    with pytest.raises(ConfigurationError) as refused:
        scan("scanned_missing", clock=1)
    assert str(refused.value) == "scanned_missing.Needy needs repository=…: pass it to scan(…)"


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        pytest.param("scanned_nowhere", "scanned_nowhere", id="package"),
        pytest.param("scanned_nowhere.tools", "scanned_nowhere", id="parent"),
        pytest.param("scanned_here.tools", "scanned_here.tools", id="module"),
    ],
)
def test_a_missing_package_is_refused(package: MakePackage, wanted: str, missing: str) -> None:
    """A missing module raises ConfigurationError."""
    package({"scanned_here/__init__.py": ""})
    with pytest.raises(ConfigurationError) as refused:
        scan(wanted)
    assert str(refused.value) == f"scan({wanted!r}): module {missing!r} does not exist"


@pytest.mark.parametrize(
    ("place", "source", "error", "text"),
    [
        pytest.param(
            "__init__.py", "import not_installed_at_all", ModuleNotFoundError, "not_installed", id="root-needs"
        ),
        pytest.param("a.py", "import not_installed_at_all", ModuleNotFoundError, "not_installed", id="module-needs"),
        pytest.param("a.py", "from axolotl_core import Nothing", ImportError, "Nothing", id="module-misses-name"),
        pytest.param("a.py", "raise RuntimeError('broken')", RuntimeError, "broken", id="module-raises"),
        pytest.param("sub/__init__.py", "raise ImportError('broken')", ImportError, "broken", id="subpackage-raises"),
        pytest.param("__init__.py", "import scanned_broken.gone", ModuleNotFoundError, "gone", id="own-module-missing"),
    ],
)
def test_a_module_that_fails_to_import_fails_the_scan(
    package: MakePackage, place: str, source: str, error: type[Exception], text: str
) -> None:
    """The error of a broken module is raised unchanged."""
    package({"scanned_broken/__init__.py": "", f"scanned_broken/{place}": source})
    with pytest.raises(error, match=text) as failed:
        scan("scanned_broken")
    assert not isinstance(failed.value, ConfigurationError)


def test_an_empty_package_has_no_tools(package: MakePackage) -> None:
    """An empty package has no tools."""
    package({"scanned_empty/__init__.py": ""})
    assert scan("scanned_empty") == ()


MARKS = (
    tool_class("Plain", "plain")
    + tool_class("Out", "out").replace("name =", "scanned = False\n    name =")
    + "class Below(Out):\n    name = 'below'\n\n"
    + tool_class("In", "in").replace("name =", "scanned = True\n    name =")
    + '@tool\ndef function() -> int:\n    """F."""\n    return 1\n\n'
    + '@tool(scanned=False)\ndef hidden() -> int:\n    """H."""\n    return 1\n'
)


def test_marks(package: MakePackage) -> None:
    """`scanned = False` leaves a class or function out; subclasses do not inherit it."""
    package({"scanned_marks.py": MARKS})
    assert names("scanned_marks") == ["plain", "below", "in", "function"]
