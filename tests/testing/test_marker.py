"""The marker `axolotl`: one test across revisions and transports."""

import pytest

from tests.testing.conftest import RunTests


def test_every_revision_and_transport(run_tests: RunTests) -> None:
    """A test runs with every revision over memory, stdio and HTTP, with overrides, a principal and faults."""
    result = run_tests(
        """
        import pytest
        from shop_container import Orders
        from axolotl_testing import as_principal, assert_refused

        CLERK = as_principal("ann", roles=["clerk"])

        @pytest.mark.axolotl(revisions="all", transports="all")
        async def test_everywhere(axolotl_client, request):
            async with axolotl_client(overrides={"orders": Orders({1: "lost"})}, principal=CLERK) as client:
                assert f"[{client.revision}-" in request.node.name
                assert '"lost"' in (await client.call("track_order", {"number": 1})).text
                assert [tool["name"] for tool in await client.list_tools()] == ["track_order"]

        @pytest.mark.axolotl(transports=["memory", "stdio", "http"])
        async def test_faults(axolotl_client, axolotl_faults):
            axolotl_faults.expire_deadline("track_order")
            async with axolotl_client(principal=CLERK) as client:
                await assert_refused(client.call("track_order", {"number": 7}), "timeout")

        @pytest.mark.axolotl(revisions=["2025-11-25"])
        async def test_arguments_win(axolotl_client):
            async with axolotl_client(revision="2026-07-28", transport="http", principal=CLERK) as client:
                assert client.revision == "2026-07-28"

        @pytest.mark.axolotl(transports=["stdio", "http"])
        async def test_nobody(axolotl_client):
            async with axolotl_client() as client:
                assert await client.list_tools() == []
        """,
        "-v",
    )
    result.stdout.fnmatch_lines(
        [
            "*test_everywhere[[]2024-11-05-memory] PASSED*",
            "*test_everywhere[[]2025-11-25-stdio] PASSED*",
            "*test_everywhere[[]2026-07-28-http] PASSED*",
            "*test_faults[[]http] PASSED*",
            "*test_arguments_win[[]2025-11-25-memory] PASSED*",
        ]
    )
    result.assert_outcomes(passed=21)


@pytest.mark.parametrize(
    ("marker", "parameter", "problem"),
    [
        ("revisions=['2025-11-52']", "axolotl_client", "there is no revision '2025-11-52'; did you mean '2025-11-25'?"),
        ("transports=['sse']", "axolotl_client", "there is no transport 'sse'; use memory, stdio, http or 'all'"),
        ("revision='all'", "axolotl_client", "takes revisions= and transports=, not an option 'revision'"),
        ("'all'", "axolotl_client", "takes revisions= and transports=, not positional arguments"),
        ("revisions='all'", "tmp_path", "needs a test that uses the fixture axolotl_client"),
    ],
)
def test_mistakes_fail_the_collection(run_tests: RunTests, marker: str, parameter: str, problem: str) -> None:
    """Unknown values are errors of the collection."""
    result = run_tests(f"import pytest\n@pytest.mark.axolotl({marker})\nasync def test_it({parameter}): ...\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*@pytest.mark.axolotl*{problem.replace('[', '[[]')}"])
