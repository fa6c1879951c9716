"""The name of a new project, and the words that it becomes in files."""

import keyword
import re
from importlib.util import find_spec
from typing import Final, NamedTuple

from axolotl_core.errors import ConfigurationError

_NAME: Final = re.compile(r"[a-z]([a-z0-9_-]*[a-z0-9])?")
_MAX_LENGTH: Final = 50
_OWN_FOLDERS: Final = ("tests", "vendor")
"""The folders of projects, which a package must not have the name of."""


class ProjectName(NamedTuple):
    """The name of a project in the forms that its files need."""

    name: str

    @property
    def package(self) -> str:
        """The name of its package, as Python imports it."""
        return self.name.replace("-", "_")

    @property
    def words(self) -> dict[str, str]:
        """The words of the templates, and what they become."""
        package = self.package
        return {"acme_shop": package, "acme-shop": self.name.replace("_", "-"), "ACME_SHOP": package.upper()}


def read_project_name(text: str) -> ProjectName:
    """Check a name, or raise ConfigurationError."""
    if not _NAME.fullmatch(text) or len(text) > _MAX_LENGTH:
        raise ConfigurationError(
            f"{text!r} cannot be the name of a project: use lower-case letters, digits, - and _, begin with a letter, "
            f"end with a letter or digit, and use at most {_MAX_LENGTH} characters"
        )
    name = ProjectName(text)
    if keyword.iskeyword(name.package) or keyword.issoftkeyword(name.package):
        raise ConfigurationError(f"{text!r} cannot be the name of a project: it is a keyword of Python")
    if name.package in _OWN_FOLDERS:
        raise ConfigurationError(f"{text!r} cannot be the name of a project: projects have a folder of that name")
    found = find_spec(name.package)
    if found is not None and found.loader is not None and found.origin is not None:  # not a folder without code
        raise ConfigurationError(
            f"{text!r} cannot be the name of a project: a module {name.package!r} exists already, and one "
            "would hide the other: choose another name"
        )
    return name
