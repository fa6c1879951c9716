"""What a server says of itself that it can do; it says nothing that is not so."""

from collections.abc import Collection, Iterable
from typing import Any

from axolotl_core.app_link import APP_EXTENSION
from axolotl_core.extension import IExtension
from axolotl_core.registry import AnyTool

__all__ = ["capabilities_of"]


def capabilities_of(
    offers: Collection[str], extensions: Iterable[IExtension], tools: Iterable[AnyTool]
) -> dict[str, Any]:
    """Write the capabilities of a server that has these kinds of features."""
    capabilities: dict[str, Any] = {"logging": {}}
    for kind in ("tools", "prompts", "resources"):
        if kind in offers:
            capabilities[kind] = {"listChanged": True}
    if "resources" in offers:
        capabilities["resources"]["subscribe"] = True
    if "prompts" in offers or "resources" in offers:
        capabilities["completions"] = {}
    announced: dict[str, Any] = {extension.identifier: extension.settings for extension in extensions}
    if any(tool.app is not None for tool in tools):
        announced.setdefault(APP_EXTENSION, {})
    if announced:
        capabilities["extensions"] = announced
    return capabilities
