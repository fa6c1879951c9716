"""Errors about optional requirements that are not installed."""

from axolotl_core.errors import ConfigurationError


def missing_extra(what: str, extra: str) -> ConfigurationError:
    """Say that something needs an extra, and how to install it."""
    return ConfigurationError(f"{what} needs the extra {extra}: pip install 'axolotl-mcp[{extra}]'")
