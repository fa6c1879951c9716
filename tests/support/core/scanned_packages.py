"""Temporary packages to scan."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

MakePackage = Callable[[dict[str, str]], None]

HEADER = """
from abc import abstractmethod
from typing import Any, Generic, TypeVar
from pydantic import BaseModel
from axolotl_core import Context, IPrompt, IResource, IResourceTemplate, ITool, NoArguments
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_core import prompt, resource, tool
"""


def written_below(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePackage]:
    """Write importable files, and unload their modules afterwards."""
    monkeypatch.syspath_prepend(str(directory))
    before = set(sys.modules)

    def write(files: dict[str, str]) -> None:
        for name, source in files.items():
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(HEADER + dedent(source), encoding="utf-8")
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        if name.partition(".")[0].startswith("scanned"):
            del sys.modules[name]
