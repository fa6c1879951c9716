"""How many there are, in words."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

__all__ = ["counted", "counts_in", "enumeration", "number"]


def counts_in(host: "ServerHost") -> dict[str, int]:
    """Count what a server offers, by kind."""
    return {
        "tool": len(host.catalogue.bindings()),
        "prompt": len(host.prompts.bindings()),
        "resource": len(host.resources.bindings()),
        "template": len(host.templates.bindings()),
    }


def counted(counts: Mapping[str, int]) -> list[str]:
    """Name what there is of each kind; where there is nothing at all, that there are no tools."""
    found = [number(count, kind) for kind, count in counts.items() if count]
    return found or [number(0, "tool")]


def enumeration(parts: Sequence[str]) -> str:
    """Join the parts of a sentence."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def number(count: int, noun: str) -> str:
    """Write how many there are."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
