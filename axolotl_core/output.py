"""Which kinds of output a tool may have, told by its declared type."""

import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

from axolotl_core.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResult,
)

__all__ = ["BLOCKS", "is_structured"]

BLOCKS = (TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink)
_UNSTRUCTURED = (*BLOCKS, ToolResult, str, type(None), None, Any, object)


def is_structured(output: Any) -> bool:
    """Tell whether values of this type become structured content: all do but text, nothing and content blocks."""
    if get_origin(output) in (Union, types.UnionType):
        return any(map(is_structured, get_args(output)))
    if get_origin(output) in (list, tuple, Sequence):
        return not all(argument is Ellipsis or _is_block(argument) for argument in get_args(output))
    return output not in _UNSTRUCTURED


def _is_block(candidate: Any) -> bool:
    if get_origin(candidate) in (Union, types.UnionType):
        return all(_is_block(argument) for argument in get_args(candidate))
    return candidate in BLOCKS
