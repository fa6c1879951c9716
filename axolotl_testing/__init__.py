"""Fixtures and assertions for tests of tool servers.

Installing `axolotl-mcp[test]` registers the fixtures with pytest: `axolotl_client`, `axolotl_server`, `axolotl_issuer`,
`axolotl_policy` and `axolotl_faults`. The functions are imported from here; the classes are the types of the fixtures.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axolotl_testing.assertions import Refusal, assert_refused, assert_result, assert_tool_error
    from axolotl_testing.clients import ClientFactory
    from axolotl_testing.faults import Faults
    from axolotl_testing.issuer import Issuer
    from axolotl_testing.policy import Policy
    from axolotl_testing.principal import as_principal
    from axolotl_testing.servers import ServerFactory, ServerProcess

__all__ = [
    "ClientFactory",
    "Faults",
    "Issuer",
    "Policy",
    "Refusal",
    "ServerFactory",
    "ServerProcess",
    "as_principal",
    "assert_refused",
    "assert_result",
    "assert_tool_error",
]

_HOMES: Final = {
    "ClientFactory": "clients",
    "Faults": "faults",
    "Issuer": "issuer",
    "Policy": "policy",
    "Refusal": "assertions",
    "ServerFactory": "servers",
    "ServerProcess": "servers",
    "as_principal": "principal",
    "assert_refused": "assertions",
    "assert_result": "assertions",
    "assert_tool_error": "assertions",
}
"""The module that defines each name."""


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that pytest loads almost nothing for tests that use nothing from here."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
