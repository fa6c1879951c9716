"""The laws of the source tree. A law that does not fail the build is decoration."""

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from tests.architecture.checkers import (
    check_class_names,
    check_exports,
    check_file_length,
    check_function_lengths,
    check_imports,
    check_module_name,
    check_prints,
    check_revisions,
    check_sleeps,
)
from tests.architecture.sources import ROOT, Source, read_sources, submodules_of

PACKAGES = "axolotl_*"
REVISIONS_LIVE_IN = ("axolotl_core/protocol/versions.py", "axolotl_server/eras/")


def assert_kept(sources: Iterable[Source], check: Callable[[Source], list[str]]) -> None:
    findings = [f"{source.path}: {finding}" for source in sources for finding in check(source)]
    assert not findings, "\n".join(["the law is broken", *findings])


def test_files_are_short() -> None:
    """No source file has more than 400 lines."""
    shrinking = ("axolotl_cli/clients/config_file.py",)
    sources = (source for source in read_sources(PACKAGES) if source.path not in shrinking)
    assert_kept(sources, lambda source: check_file_length(source.text))


def test_functions_are_short() -> None:
    """No function has more than 50 lines."""
    assert_kept(read_sources(PACKAGES), lambda source: check_function_lengths(source.text))


def test_exports_are_the_namespace() -> None:
    """Every root has an `__all__` that is sorted and equal to its public names, submodules excluded."""

    def check(source: Source) -> list[str]:
        package = PurePosixPath(source.path).parent
        return check_exports(source.text, ".".join(package.parts), submodules_of(str(package)))

    roots = [ROOT / name for name in ("axolotl_core", "axolotl_server", "axolotl_cli", "axolotl_examples")]
    names = {f"{path.relative_to(ROOT).as_posix()}/__init__.py" for path in roots}
    assert_kept((source for source in read_sources(PACKAGES) if source.path in names), check)


def test_revisions_are_confined() -> None:
    """Protocol revisions are spelled in `axolotl_core/protocol/versions.py` and `axolotl_server/eras/` only."""
    elsewhere = (source for source in read_sources(PACKAGES) if not source.path.startswith(REVISIONS_LIVE_IN))
    assert_kept(elsewhere, lambda source: check_revisions(source.text))


def test_tests_do_not_sleep() -> None:
    """No test sleeps for a fixed time, save where a comment on that line says why: `# sleeps: <reason>`."""
    assert_kept(read_sources("tests"), lambda source: check_sleeps(source.text))


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
    """Layers import nothing of ours but the core and each other."""
    forbidden = ["axolotl_server", "axolotl_cli", "axolotl_examples"]
    assert_kept(
        read_sources("axolotl_server/layers"),
        lambda source: check_imports(source.text, forbidden, allowed=["axolotl_server.layers"]),
    )
