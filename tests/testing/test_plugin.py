"""The plugin in a session: what it imports, and workers of xdist."""

import subprocess
import sys

import pytest

from tests.testing.conftest import SESSION, RunTests


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_needed(pytester: pytest.Pytester) -> None:
    """A session whose tests use no fixture imports two small modules of ours, and no library."""
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            print("MODULES", *sys.modules)
        """
    )
    others = ("asyncio", "anyio", "hypothesispytest")
    command = [sys.executable, "-m", "pytest", "-s", *(word for name in others for word in ("-p", f"no:{name}"))]

    def modules(*options: str) -> set[str]:
        done = subprocess.run([*command, *options], cwd=pytester.path, capture_output=True, text=True, check=True)
        [line] = [line for line in done.stdout.splitlines() if "MODULES" in line]
        return set(line.partition("MODULES")[2].split())

    assert modules(*SESSION) - modules("-p", "no:axolotl") == {"axolotl_testing", "axolotl_testing.plugin"}


@pytest.mark.slow
def test_workers_of_xdist(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """The fixtures work in several workers at once."""
    pytester.makepyfile(
        test_more="""
        import pytest
        from axolotl_testing import as_principal

        @pytest.mark.parametrize("number", range(4))
        async def test_list(axolotl_client, number):
            async with axolotl_client(principal=as_principal("mia", roles=["manager"])) as client:
                assert len(await client.list_tools()) == 2
        """
    )
    options = [option for option in SESSION if option != "no:xdist"]
    result = pytester.runpytest_subprocess(*options[:-1], "-n", "2")
    result.assert_outcomes(passed=4)


def test_anyio(run_tests: RunTests) -> None:
    """The fixtures work with the plugin of anyio instead of pytest-asyncio."""
    result = run_tests(
        """
        import pytest
        from axolotl_testing import as_principal

        pytestmark = pytest.mark.anyio

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        async def test_list(axolotl_client):
            async with axolotl_client(principal=as_principal("mia", roles=["manager"]), transport="http") as client:
                assert len(await client.list_tools()) == 2
        """,
        "-o",
        "asyncio_mode=strict",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_no_extra_is_needed(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """All fixtures but the issuer work with the packages that every installation has."""
    pytester.makeconftest(
        """
        import sys

        EXTRAS = {"httpx2", "jwt", "mcp", "opentelemetry", "prometheus_client", "redis", "watchfiles", "yaml"}

        class OnlyRequired:
            def find_spec(self, name, path=None, target=None):
                if name in EXTRAS:
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, OnlyRequired())
        """
    )
    pytester.makepyfile(
        test_bare="""
        from axolotl_testing import as_principal

        async def test_client(axolotl_client, axolotl_faults):
            async with axolotl_client(principal=as_principal("ann", roles=["clerk"]), transport="stdio") as client:
                assert len(await client.list_tools()) == 1

        def test_policy(axolotl_policy):
            axolotl_policy.expect(roles=["clerk"], sees={"track_order"})

        async def test_server(axolotl_server):
            async with axolotl_server() as server:
                assert server.port
        """
    )
    pytester.runpytest_subprocess(*SESSION).assert_outcomes(passed=3)
