"""The installed Axolotl as a wheel, for projects whose machines cannot get it from a package index."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import axolotl_core

PACKAGES: Final = ("axolotl_cli", "axolotl_core", "axolotl_examples", "axolotl_server", "axolotl_testing")
"""The packages of a wheel, which lie next to each other in an installation and in a checkout."""

LEFTOVERS: Final = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "orders.db"})
"""What running the code leaves behind in a checkout."""

_DESCRIPTION: Final = frozenset({"METADATA", "WHEEL", "entry_points.txt", "licenses"})
"""The files and folders of a distribution's description that do not depend on the place of an installation."""


def is_from_index() -> bool:
    """Whether Axolotl was installed from a package index, and not from a file, a checkout or a URL (PEP 610)."""
    return distribution("axolotl-mcp").read_text("direct_url.json") is None


def write_wheel(directory: Path) -> str:
    """Write a wheel of the installed Axolotl to a new directory, and return its name.

    Neither the original wheel, nor build tools, nor a network are needed: what is installed is packed again.
    """
    name = f"axolotl_mcp-{distribution('axolotl-mcp').version}"
    directory.mkdir()
    wheel = directory / f"{name}-py3-none-any.whl"
    records = [f"{name}.dist-info/RECORD,,\n"]
    with ZipFile(wheel, "w") as archive:
        for inside, file in _files():
            content = file.read_bytes()
            digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{inside},sha256={digest},{len(content)}\n")
            archive.writestr(_entry(inside), content)
        archive.writestr(_entry(f"{name}.dist-info/RECORD"), "".join(records))
    return wheel.name


def _files() -> Iterator[tuple[str, Path]]:
    """Iterate over the files of the wheel: the name inside and the place."""
    root = Path(axolotl_core.__file__).parents[1]
    for package in PACKAGES:
        for file in sorted(root.joinpath(package).rglob("*")):
            place = file.relative_to(root)
            if file.is_file() and LEFTOVERS.isdisjoint(place.parts):
                yield place.as_posix(), file
    for listed in distribution("axolotl-mcp").files or ():
        if listed.parts[0].endswith(".dist-info") and listed.parts[1] in _DESCRIPTION:
            yield listed.as_posix(), Path(str(listed.locate()))


def _entry(inside: str) -> ZipInfo:
    """An entry that everyone may read. Its date is always the same."""
    entry = ZipInfo(inside)
    entry.external_attr = 0o100644 << 16
    entry.compress_type = ZIP_DEFLATED
    return entry
