"""The pytest plugin: fixtures that import the rest of the package when a test requests them."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from axolotl_testing.clients import ClientFactory
    from axolotl_testing.project import Project


@pytest.fixture
def axolotl_client(request: pytest.FixtureRequest) -> "ClientFactory":
    """Connect a client to the project's server, or to that of another container: `async with axolotl_client(…)`."""
    from axolotl_testing.clients import ClientFactory

    return ClientFactory(_project(request))


def _project(request: pytest.FixtureRequest) -> "Project":
    from axolotl_testing.project import Project

    return Project(request.path.parent)
