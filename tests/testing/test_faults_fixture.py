"""`axolotl_faults`: real deadlines, retries, breakers and outages; unused faults fail the test."""

from tests.testing.conftest import RunTests

CONTAINER = """
        import pytest
        from dependency_injector import containers, providers
        from axolotl_core import tool
        from axolotl_core.policies.tool_rules import Breaker, Retry
        from axolotl_testing import assert_refused, assert_result, assert_tool_error

        log = []

        @tool(timeout_seconds=0.05)
        async def quick() -> str:
            log.append("ran")
            return "done"

        @tool
        async def wait() -> str:
            return "never"

        @tool(retry=Retry(attempts=3, base_seconds=0.001), breaker=Breaker(failures=1))
        async def fetch() -> str:
            return "done"

        @tool
        def threaded() -> str:
            return "done"

        class Container(containers.DeclarativeContainer):
            tools = providers.Object([quick, wait, fetch, threaded])

        @pytest.fixture(autouse=True)
        def empty():
            log.clear()
"""


def test_faults_happen(run_tests: RunTests) -> None:
    """Each fault reaches the code through the real layers."""
    result = run_tests(
        CONTAINER
        + """
        async def test_slow(axolotl_client, axolotl_faults):
            axolotl_faults.slow("QUICK", 30, times=1)
            async with axolotl_client(Container) as client:
                await assert_refused(client.call("quick"), "timeout")
                assert log == []
                assert_result(await client.call("quick"), "done")

        async def test_raises(axolotl_client, axolotl_faults, caplog):
            axolotl_faults.raises("threaded", ValueError("secret"))
            async with axolotl_client(Container) as client:
                assert "secret" not in assert_tool_error(await client.call("threaded"))

        async def test_retries(axolotl_client, axolotl_faults):
            axolotl_faults.raises("fetch", ConnectionError, times=2)
            async with axolotl_client(Container) as client:
                assert_result(await client.call("fetch"), "done")

        async def test_breaker(axolotl_client, axolotl_faults, caplog):
            axolotl_faults.raises("fetch", ConnectionError)
            async with axolotl_client(Container) as client:
                assert_tool_error(await client.call("fetch"))
                await assert_refused(client.call("fetch"), "circuit_open")

        async def test_deadline(axolotl_client, axolotl_faults):
            axolotl_faults.expire_deadline("wait")
            async with axolotl_client(Container) as client:
                refusal = await assert_refused(client.call("wait"), "timeout")
                assert "30 seconds" in refusal.message

        async def test_store(axolotl_client, axolotl_faults):
            axolotl_faults.store_down("quotas")
            settings = {"quotas": {"rules": {"everybody": {"rate_per_second": 9}}, "on_store_failure": "closed"}}
            container = Container()
            async with axolotl_client(container, settings=settings) as client:
                await assert_refused(client.call("quick"), "quota_unavailable")
            assert "quota_store" not in container.providers and "layers" not in container.providers
        """
    )
    result.assert_outcomes(passed=6)


def test_unused_faults(run_tests: RunTests) -> None:
    """A fault that does not happen fails the test, and a misspelled name is explained."""
    result = run_tests(
        CONTAINER
        + """
        async def test_unused(axolotl_client, axolotl_faults):
            axolotl_faults.slow("qiuck", 1)
            axolotl_faults.raises("quick", ValueError("no"), times=2)
            axolotl_faults.store_down("results")
            async with axolotl_client(Container) as client:
                await client.call("quick")
                await client.call("threaded")

        async def test_first_failure(axolotl_client, axolotl_faults):
            axolotl_faults.slow("quick", 1)
            assert False, "the test itself"

        def test_no_such_store(axolotl_faults):
            axolotl_faults.store_down("quota")
        """
    )
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: These faults did not happen:",
            "E*slow('qiuck', 1): not used, because there is no 'qiuck'; did you mean 'quick'?",
            "E*raises('quick', ValueError('no')): used 1 of 2 times",
            "E*store_down('results'): not used",
            "E*AssertionError: the test itself",
            "E*ValueError: There is no store 'quota'; did you mean 'quotas'?",
        ]
    )
