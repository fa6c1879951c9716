"""The laws of the source tree. Each one fails the build when it is broken."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from tests.architecture.checkers import (
    check_class_names,
    check_class_names_are_unique,
    check_docstring,
    check_exports,
    check_file_length,
    check_folder_sizes,
    check_function_lengths,
    check_imports,
    check_module_name,
    check_module_names_are_unique,
    check_no_exports,
    check_prints,
    check_revisions,
    check_sleeps,
    check_unused_vocabulary,
    check_vocabulary,
)
from tests.architecture.sources import ROOT, Source, read_sources, submodules_of

PACKAGES: Final = "axolotl_*"
FRAMEWORK: Final = ("axolotl_core", "axolotl_server", "axolotl_cli", "axolotl_testing")
MAX_TEST_FILE_LINES: Final = 500
MAX_TEST_FOLDER_FILES: Final = 20
REVISIONS_LIVE_IN: Final = ("axolotl_core/protocol/versions.py", "axolotl_server/eras/")

LIBRARIES: Final = {
    "asyncpg": ["axolotl_server/task_engines/"],
    "cryptography": ["axolotl_server/questions/", "axolotl_testing/issuer.py"],
    "dependency_injector": [
        "axolotl_cli/checking/",
        "axolotl_cli/target.py",
        "axolotl_server/call_providers.py",
        "axolotl_server/client/",
        "axolotl_server/host.py",
        "axolotl_server/hosting/",
        "axolotl_server/http/",
        "axolotl_server/lifecycle/",
        "axolotl_testing/",
    ],
    "docstring_parser": ["axolotl_core/features/"],
    "dotenv": ["axolotl_server/configuration/"],
    "httpx2": ["axolotl_server/authentication/", "axolotl_server/client/"],
    "jsonschema_rs": ["axolotl_core/contract/", "axolotl_core/tools/"],
    "jwt": ["axolotl_server/authentication/", "axolotl_testing/issuer.py"],
    "opentelemetry": ["axolotl_server/observation/"],
    "pgqueuer": ["axolotl_server/task_engines/"],
    "prometheus_client": ["axolotl_server/observation/"],
    "pytest": ["axolotl_testing/"],
    "redis": ["axolotl_server/stores/"],
    "rich": ["axolotl_cli/output.py", "axolotl_cli/views/"],
    "splintr": ["axolotl_cli/budget/"],
    "uritemplate": ["axolotl_core/resources/"],
    "uvicorn": ["axolotl_server/http_server/"],
    "uvloop": ["axolotl_cli/runtime.py"],
    "watchfiles": ["axolotl_cli/development/"],
    "yaml": ["axolotl_server/skills/"],
}
"""Libraries, each with the only places that may import it."""


def assert_kept(sources: Iterable[Source], check: Callable[[Source], list[str]]) -> None:
    assert_nothing(f"{source.path}: {finding}" for source in sources for finding in check(source))


def assert_nothing(findings: Iterable[str]) -> None:
    found = list(findings)
    assert not found, "\n".join(["the law is broken", *found])


def paths_of(*packages: str) -> list[str]:
    return [source.path for source in read_sources(*packages)]


def is_root(source: Source) -> bool:
    """Whether a file is the root of a package: of the framework, or of one of the example systems."""
    path = PurePosixPath(source.path)
    depth = 3 if path.parts[0] == "axolotl_examples" else 2
    return path.name == "__init__.py" and len(path.parts) <= depth


def test_files_are_short() -> None:
    """No source file has more than 400 lines."""
    assert_kept(read_sources(PACKAGES), lambda source: check_file_length(source.text))


def test_functions_are_short() -> None:
    """No function has more than 50 lines."""
    assert_kept(read_sources(PACKAGES), lambda source: check_function_lengths(source.text))


def test_folders_are_small() -> None:
    """No folder has more than 15 modules, not counting `__init__` and `__main__`."""
    assert_nothing(check_folder_sizes(paths_of(*FRAMEWORK)))


def test_module_names_are_unique() -> None:
    """A module name occurs once per package; `assembly`, `routes` and the names of folders may recur."""
    assert_nothing(check_module_names_are_unique(paths_of(*FRAMEWORK)))


def test_class_names_are_unique() -> None:
    """A public class name occurs once in all packages of the framework."""
    assert_nothing(check_class_names_are_unique({source.path: source.text for source in read_sources(*FRAMEWORK)}))


def test_names_are_in_the_glossary() -> None:
    """Every word in the name of a module or folder is in the glossary, and every plain word there is in use."""
    page = (ROOT / "docs/internals/glossary.md").read_text(encoding="utf-8")
    defined = re.findall(r"^\| ([a-z, ]+) \|", page, re.MULTILINE)
    [plain] = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    words = [word for entry in defined for word in re.split(r"[ ,]+", entry)] + plain.split()
    paths = paths_of(*FRAMEWORK)
    assert_nothing([*check_vocabulary(paths, words), *check_unused_vocabulary(paths, plain.split())])


def test_docstrings_name_things() -> None:
    """The first line of a module docstring is a noun phrase of at most 100 characters."""
    assert_kept(read_sources(PACKAGES), lambda source: check_docstring(source.text))


def test_exports_are_the_namespace() -> None:
    """Every root has an `__all__` that is sorted and equal to its public names, submodules excluded."""

    def check(source: Source) -> list[str]:
        package = PurePosixPath(source.path).parent
        return check_exports(source.text, ".".join(package.parts), submodules_of(str(package)))

    assert_kept(filter(is_root, read_sources(PACKAGES)), check)


def test_only_roots_export() -> None:
    """No module has an `__all__`, except the roots and the module of providers that user containers import."""
    public = ("axolotl_server/call_providers.py", "axolotl_examples/three_good_sources/tools/__init__.py")
    inner = (source for source in read_sources(PACKAGES) if not is_root(source) and source.path not in public)
    assert_kept(inner, lambda source: check_no_exports(source.text))


def test_libraries_have_a_package() -> None:
    """A library is imported only where it belongs."""

    def check(source: Source) -> list[str]:
        foreign = [name for name, homes in LIBRARIES.items() if not source.path.startswith(tuple(homes))]
        return check_imports(source.text, foreign)

    assert_kept(read_sources(*FRAMEWORK), check)


def test_revisions_are_confined() -> None:
    """Protocol revisions are spelled in `axolotl_core/protocol/versions.py` and `axolotl_server/eras/` only."""
    elsewhere = (source for source in read_sources(PACKAGES) if not source.path.startswith(REVISIONS_LIVE_IN))
    assert_kept(elsewhere, lambda source: check_revisions(source.text))


def test_tests_do_not_sleep() -> None:
    """No test sleeps for a fixed time, unless a comment on that line gives the reason: `# sleeps: <reason>`."""
    assert_kept(read_sources("tests"), lambda source: check_sleeps(source.text))


def test_tests_are_short() -> None:
    """No test file has more than 500 lines, and no folder of tests more than 20 files."""
    assert_kept(read_sources("tests"), lambda source: check_file_length(source.text, MAX_TEST_FILE_LINES))
    assert_nothing(check_folder_sizes(paths_of("tests"), MAX_TEST_FOLDER_FILES))


def test_names_have_a_purpose() -> None:
    """No module is called utils, helpers or manager; no class begins or ends with Base, Impl, Manager or Helper."""
    assert_kept(read_sources(PACKAGES), lambda source: check_module_name(source.path) + check_class_names(source.text))


def test_libraries_do_not_print() -> None:
    """Core and server do not print: standard output belongs to the protocol."""
    assert_kept(read_sources("axolotl_core", "axolotl_server"), lambda source: check_prints(source.text))


def test_core_waits_for_nothing() -> None:
    """The core does not import asyncio, not even inside a function or for types."""
    assert_kept(read_sources("axolotl_core"), lambda source: check_imports(source.text, ["asyncio"]))


def test_layers_import_the_core_only() -> None:
    """At run time, layers import nothing of ours but the core and each other."""
    check = partial(
        check_imports,
        forbidden=["axolotl_server", "axolotl_cli", "axolotl_testing", "axolotl_examples"],
        allowed=["axolotl_server.layers"],
        annotations=False,
    )
    assert_kept(read_sources("axolotl_server/layers"), lambda source: check(source.text))
