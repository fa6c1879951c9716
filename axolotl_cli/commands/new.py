"""`axolotl new`: a project that passes its own checks."""

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from axolotl_cli.scaffold.project_name import read_project_name
from axolotl_cli.scaffold.rendering import VENDORED, make_project
from axolotl_core.errors import ConfigurationError


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the project and of its package: shop, or acme-shop.")
    ],
    *,
    minimal: Annotated[
        bool, typer.Option("--minimal", help="Write only a package with one tool, its settings and one test.")
    ] = False,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="DIR", help="Write to this directory instead of ./NAME.")
    ] = None,
) -> None:
    """Create a project: tools, settings with profiles and access rules, tests, a Dockerfile and a CI file.

    The directory must not exist, or be empty. Nothing is left if the command fails.
    """
    project = read_project_name(name)
    target = Path(name) if directory is None else directory
    if not minimal and importlib.util.find_spec("yaml") is None:
        raise ConfigurationError.missing_extra("A full project has a skill, which", "skills", "or use --minimal")
    make_project("minimal" if minimal else "full", project, target)
    typer.echo(f"Created {name} in {target}. Next:\n")
    for command in (f"cd {target}", "python -m pip install -e '.[dev]'", "pytest", "axolotl dev"):
        typer.echo(f"  {command}")
    if (target / VENDORED).is_dir():
        typer.echo(f"\nCommit {VENDORED}/ too: Axolotl was not installed from a package index, so it is a wheel there.")
