"""The laws of the source tree. Each one fails the build when it is broken."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import pytest

from tests.architecture.checkers import (
    check_file_length,
    check_function_lengths,
    check_imports,
    check_revisions,
    check_sleeps,
    names_with,
)
from tests.architecture.sources import Source, read_sources

PACKAGES: Final = "axolotl_*"
FRAMEWORK: Final = ("axolotl_core", "axolotl_server", "axolotl_cli", "axolotl_testing")
REVISIONS_LIVE_IN: Final = ("axolotl_core/protocol/versions.py", "axolotl_server/protocol/eras/")

BUDGET: Final = {"axolotl_core": 8_300, "axolotl_server": 32_480, "axolotl_cli": 7_140, "axolotl_testing": 1_250}
"""The most lines of each package. To raise one, say in `docs/internals/design.md` what users get for it."""

EXTENSIONS: Final = ("axolotl_server/extensions/", "axolotl_server/client/", "axolotl_server/bundled.py")
"""The extensions, the client, which is no part of the kernel, and the list of the extensions that come with it."""
OF_ASYNCIO: Final = re.compile(
    r"(asyncio\.)?_?I?[Tt]asks?|(\w*_)?(create|current|all|start|asgi|run)_tasks?|_TASK_NAME",
)
"""Names of the tasks of an event loop, which are no extension."""
NAMED_IN_KERNEL: Final = {
    "axolotl_server/hosting/contract.py": {"task_support"},
    "axolotl_server/protocol/eras/presentation.py": {"task_support", "taskSupport"},
    "axolotl_server/settings/calls.py": {"TaskSettings"},
    "axolotl_server/settings/mistakes.py": {
        "console.recent_calls",
        "tasks.hold_seconds",
        "tasks.max_bytes",
        "tasks.max_runs",
        "tasks.maximum_per_principal",
        "tasks.poll_interval_seconds",
    },
    "axolotl_server/settings/server.py": {"TaskSettings", "tasks.url", "ConsoleSettings", "console"},
}
"""What stays: a member of tools in definitions and locks, the sections of the settings, and their old names."""

LIBRARIES: Final = {
    "asyncpg": ["axolotl_server/extensions/tasks/engines/postgres_"],
    "cryptography": ["axolotl_server/calls/", "axolotl_testing/issuer.py"],
    "dependency_injector": [
        "axolotl_cli/checking/",
        "axolotl_cli/target.py",
        "axolotl_server/call_providers.py",
        "axolotl_server/client/",
        "axolotl_server/host.py",
        "axolotl_server/hosting/",
        "axolotl_server/http/",
        "axolotl_server/execution/",
        "axolotl_testing/",
    ],
    "docstring_parser": ["axolotl_core/features/"],
    "dotenv": ["axolotl_server/settings/"],
    "httpx2": ["axolotl_server/access/", "axolotl_server/client/"],
    "jsonschema_rs": ["axolotl_core/contract/", "axolotl_core/tools/"],
    "jwt": ["axolotl_server/access/", "axolotl_cli/checking/auth_diagnosis.py", "axolotl_testing/issuer.py"],
    "opentelemetry": ["axolotl_server/observation/"],
    "pgqueuer": ["axolotl_server/extensions/tasks/engines/postgres_"],
    "prometheus_client": ["axolotl_server/observation/"],
    "pytest": ["axolotl_testing/"],
    "redis": ["axolotl_server/stores/"],
    "rich": ["axolotl_cli/output.py", "axolotl_cli/views/"],
    "uritemplate": ["axolotl_core/resources/"],
    "uvicorn": ["axolotl_server/http/server/"],
    "uvloop": ["axolotl_cli/runtime.py"],
    "watchfiles": ["axolotl_cli/development/"],
    "yaml": ["axolotl_server/extensions/skills/"],
}
"""Libraries, each with the only places that may import it."""


def assert_kept(sources: Iterable[Source], check: Callable[[Source], list[str]]) -> None:
    findings = [f"{source.path}: {finding}" for source in sources for finding in check(source)]
    assert not findings, "\n".join(["the law is broken", *findings])


def test_files_are_short() -> None:
    """No source file has more than 400 lines."""
    assert_kept(read_sources(PACKAGES), lambda source: check_file_length(source.text))


def test_functions_are_short() -> None:
    """No function has more than 50 lines."""
    assert_kept(read_sources(PACKAGES), lambda source: check_function_lengths(source.text))


@pytest.mark.parametrize("package", BUDGET)
def test_packages_keep_their_budget(package: str) -> None:
    """A package has no more lines than its budget."""
    lines = sum(len(source.text.splitlines()) for source in read_sources(package))
    assert lines <= BUDGET[package], f"{package} has {lines} lines, its budget {BUDGET[package]}"


def test_libraries_have_a_package() -> None:
    """A library is imported only where it belongs."""

    def check(source: Source) -> list[str]:
        foreign = [name for name, homes in LIBRARIES.items() if not source.path.startswith(tuple(homes))]
        return check_imports(source.text, foreign)

    assert_kept(read_sources(*FRAMEWORK), check)


def test_revisions_are_confined() -> None:
    """Revisions are spelled in `axolotl_core/protocol/versions.py` and `axolotl_server/protocol/eras/` only."""
    elsewhere = (source for source in read_sources(PACKAGES) if not source.path.startswith(REVISIONS_LIVE_IN))
    assert_kept(elsewhere, lambda source: check_revisions(source.text))


def test_tests_do_not_sleep() -> None:
    """No test sleeps for a fixed time, unless a comment on that line gives the reason: `# sleeps: <reason>`."""
    assert_kept(read_sources("tests"), lambda source: check_sleeps(source.text))


def test_core_waits_for_nothing() -> None:
    """The core does not import asyncio, not even inside a function or for types."""
    assert_kept(read_sources("axolotl_core"), lambda source: check_imports(source.text, ["asyncio"]))


def test_the_kernel_names_no_extension() -> None:
    """Nothing in the server outside of the extensions and the list of them names tasks, skills or the console."""
    words = {"task", "tasks", "skill", "skills", "console"}
    sources = (one for one in read_sources("axolotl_server") if not one.path.startswith(EXTENSIONS))
    found = {one.path: names_with(one.text, words) for one in sources}
    named = {path: {name for name in names if not OF_ASYNCIO.fullmatch(name)} for path, names in found.items()}
    assert {path: names for path, names in named.items() if names} == NAMED_IN_KERNEL


def test_layers_import_the_core_only() -> None:
    """At run time, layers import nothing of ours but the core and each other."""
    check = partial(
        check_imports,
        forbidden=["axolotl_server", "axolotl_cli", "axolotl_testing", "axolotl_examples"],
        allowed=["axolotl_server.layers"],
        annotations=False,
    )
    assert_kept(read_sources("axolotl_server/layers"), lambda source: check(source.text))
