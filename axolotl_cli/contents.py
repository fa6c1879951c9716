"""Content of tools, prompts and resources, on a terminal and in pipes."""

import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import typer

__all__ = ["print_contents", "text_of"]


def text_of(block: Mapping[str, Any]) -> str:
    """Show a block of content; what a terminal cannot show is named."""
    if block["type"] == "text":
        return str(block["text"])
    resource = block.get("resource", block)
    if "text" in resource:
        return str(resource["text"])
    kind, place = resource.get("mimeType", ""), resource.get("uri", "")
    return f"[{' '.join(part for part in (block['type'], kind, place) if part)}]"


def print_contents(contents: Sequence[Mapping[str, Any]]) -> None:
    """Write what was read as it is; for a person text ends with a line break, and of bytes there is only the size."""
    for rest, content in zip(reversed(range(len(contents))), contents, strict=True):
        if "text" in content:
            text = str(content["text"])
            typer.echo(text, nl=not text.endswith("\n") and (rest > 0 or sys.stdout.isatty()))
            continue
        data = b64decode(content["blob"])
        if sys.stdout.isatty():
            kind = content.get("mimeType", "bytes")
            typer.echo(f"[{kind}, {len(data)} bytes: redirect the output to have them]")
        else:
            typer.echo(data, nl=False)
