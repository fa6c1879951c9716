"""The pytest plugin: fixtures that import the rest of the package when a test requests them."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from axolotl_testing.clients import ClientFactory
    from axolotl_testing.faults import FaultPlan, Faults
    from axolotl_testing.issuer import Issuer
    from axolotl_testing.policy import Policy
    from axolotl_testing.project import Project
    from axolotl_testing.servers import ServerFactory


@pytest.fixture
def axolotl_client(request: pytest.FixtureRequest) -> "ClientFactory":
    """Connect a client to the project's server, or to that of another container: `async with axolotl_client(…)`."""
    from axolotl_testing.clients import ClientFactory

    has_faults = "axolotl_faults" in request.fixturenames
    plan = request.getfixturevalue("_axolotl_fault_plan") if has_faults else None
    return ClientFactory(_project(request), plan)


@pytest.fixture
def axolotl_server(request: pytest.FixtureRequest) -> "ServerFactory":
    """Serve the project in a process of its own, on a free port: `async with axolotl_server(…) as server`."""
    from axolotl_testing.servers import ServerFactory

    def report(log: str) -> None:
        request.node.add_report_section("call", "axolotl server log", log)

    return ServerFactory(_project(request), report)


@pytest.fixture(scope="session")
def axolotl_issuer() -> "Iterator[Issuer]":
    """Issue tokens, and publish the keys that verify them."""
    try:
        from axolotl_testing.issuer import Issuer
    except ModuleNotFoundError as error:
        pytest.fail(
            f"axolotl_issuer needs {error.name}: install the extra auth, pip install 'axolotl-mcp[auth]'", pytrace=False
        )
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture
def axolotl_policy(request: pytest.FixtureRequest) -> "Policy":
    """Expect who sees and may call what: `axolotl_policy.expect(roles=["clerk"], sees={…}, calls={…})`."""
    from axolotl_testing.policy import Policy

    return Policy(_project(request))


@pytest.fixture
def axolotl_faults(_axolotl_fault_plan: "FaultPlan") -> "Faults":
    """Let tools and stores fail."""
    from axolotl_testing.faults import Faults

    return Faults(_axolotl_fault_plan)


@pytest.fixture
def _axolotl_fault_plan() -> "FaultPlan":
    from axolotl_testing.faults import FaultPlan

    return FaultPlan()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test whose faults did not happen."""
    yield
    plan: FaultPlan | None = getattr(item, "funcargs", {}).get("_axolotl_fault_plan")
    if plan is not None:
        plan.check()


def _project(request: pytest.FixtureRequest) -> "Project":
    from axolotl_testing.project import Project

    return Project(request.path.parent)
