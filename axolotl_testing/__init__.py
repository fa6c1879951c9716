"""Fixtures and assertions for tests of tool servers.

Installing `axolotl-mcp[test]` registers the fixtures with pytest: `axolotl_client`. The functions are imported from
here, and the classes are the types of the fixtures.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axolotl_testing.assertions import Refusal, assert_refused, assert_result, assert_tool_error
    from axolotl_testing.clients import ClientFactory
    from axolotl_testing.principal import as_principal
    from axolotl_testing.snapshots import listing, plain

__all__ = [
    "ClientFactory",
    "Refusal",
    "as_principal",
    "assert_refused",
    "assert_result",
    "assert_tool_error",
    "listing",
    "plain",
]

_HOMES: Final = {
    "ClientFactory": "clients",
    "Refusal": "assertions",
    "as_principal": "principal",
    "assert_refused": "assertions",
    "assert_result": "assertions",
    "assert_tool_error": "assertions",
    "listing": "snapshots",
    "plain": "snapshots",
}
"""The module that defines each name."""


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that pytest loads almost nothing for tests that use nothing from here."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
