"""`axolotl_client`: the project's container, overrides, settings and leftovers."""

import pytest

from tests.testing.conftest import RunTests


def test_the_project_is_served(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """The target, the rules and the profile `test` come from the settings file; overrides replace providers."""
    result = run_tests(
        """
        from pathlib import Path
        from shop_container import Container, Orders
        from axolotl_testing import as_principal, assert_result

        CLERK = as_principal("ann", roles=["clerk"])
        MANAGER = as_principal("mia", roles=["manager"])

        async def name_of(client):
            return (await client.request("server/discover", {}))["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]

        async def test_override(axolotl_client):
            async with axolotl_client(overrides={"orders": Orders({1: "lost"})}, principal=CLERK) as client:
                assert_result(await client.call("track_order", {"number": 1}), {"state": "lost", "currency": "EUR"})
                assert [tool["name"] for tool in await client.list_tools()] == ["track_order"]
            assert not Path("opened").exists()

        async def test_override_in_a_subcontainer(axolotl_client):
            async with axolotl_client(overrides={"prices.currency": "SEK"}, principal=CLERK) as client:
                assert_result(await client.call("track_order", {"number": 7}), {"state": "sent", "currency": "SEK"})

        async def test_environment(axolotl_client, monkeypatch):
            monkeypatch.setenv("AXOLOTL_SERVER__NAME", "changed")
            async with axolotl_client(principal=CLERK) as client:
                assert await name_of(client) == "tested"

        async def test_settings(axolotl_client):
            settings = {"server": {"name": "other"}, "authorization": {"default": "allow"}}
            async with axolotl_client(settings=settings) as client:
                assert await name_of(client) == "other"
                assert len(await client.list_tools()) == 2

        async def test_no_profile_and_toolsets(axolotl_client):
            async with axolotl_client(profile=None, toolsets=["write"], principal=MANAGER) as client:
                assert await name_of(client) != "tested"
                assert [tool["name"] for tool in await client.list_tools()] == ["restock"]

        async def test_own_container(axolotl_client):
            async with axolotl_client(Container) as client:
                assert len(await client.list_tools()) == 2

        async def test_shared_container(axolotl_client):
            shared = Container()
            for state in "found", "lost":
                async with axolotl_client(shared, overrides={"orders": Orders({1: state})}) as client:
                    assert (await client.call("track_order", {"number": 1})).structured["state"] == state
            assert not shared.orders.overridden
        """
    )
    result.assert_outcomes(passed=7)


def test_every_revision_and_transport(run_tests: RunTests) -> None:
    """A test runs with every revision over memory, stdio and HTTP, with overrides, a principal and faults."""
    result = run_tests(
        """
        import pytest
        from shop_container import Orders
        from axolotl_core.protocol.versions import REVISIONS
        from axolotl_testing import as_principal, assert_refused

        CLERK = as_principal("ann", roles=["clerk"])
        TRANSPORTS = ["memory", "stdio", "http"]

        @pytest.mark.parametrize("transport", TRANSPORTS)
        @pytest.mark.parametrize("revision", [revision.name for revision in REVISIONS])
        async def test_everywhere(axolotl_client, revision, transport):
            orders = {"orders": Orders({1: "lost"})}
            options = {"revision": revision, "transport": transport}
            async with axolotl_client(overrides=orders, principal=CLERK, **options) as client:
                assert client.revision == revision
                assert '"lost"' in (await client.call("track_order", {"number": 1})).text
                assert [tool["name"] for tool in await client.list_tools()] == ["track_order"]

        @pytest.mark.parametrize("transport", TRANSPORTS)
        async def test_faults(axolotl_client, axolotl_faults, transport):
            axolotl_faults.expire_deadline("track_order")
            async with axolotl_client(principal=CLERK, transport=transport) as client:
                await assert_refused(client.call("track_order", {"number": 7}), "timeout")

        @pytest.mark.parametrize("transport", TRANSPORTS)
        async def test_nobody(axolotl_client, transport):
            async with axolotl_client(transport=transport) as client:
                assert await client.list_tools() == []
        """
    )
    result.assert_outcomes(passed=21)


def test_mistakes_are_explained(run_tests: RunTests) -> None:
    """Unknown providers, profiles and targets are errors with suggestions, and so are calls that fail."""
    result = run_tests(
        """
        from axolotl_testing import as_principal, assert_result

        async def test_override(axolotl_client):
            async with axolotl_client(overrides={"ordres": None}): ...

        async def test_nested_override(axolotl_client):
            async with axolotl_client(overrides={"prices.curency": None}): ...

        async def test_profile(axolotl_client):
            async with axolotl_client(profile="tset"): ...

        async def test_failed(axolotl_client):
            async with axolotl_client(principal=as_principal("ann", roles=["clerk"])) as client:
                assert_result(await client.call("track_order", {"number": 8}), {"state": "sent"})
        """
    )
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "*overrides: The container has no provider 'ordres'; did you mean 'orders'?",
            "*overrides: The container 'prices' has no provider 'curency'; did you mean 'prices.currency'?",
            "*axolotl.toml has no profile 'tset'; did you mean 'test'?",
            "*The call failed: There is no order 8",
        ]
    )


def test_audit_logs_stay_out_of_tests(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """The audit log of the settings file is not written, unless the profile has one."""
    settings = pytester.path / "axolotl.toml"
    paths = '[audit]\njsonl_path = "real.jsonl"\n[profile.audited.audit]\njsonl_path = "test.jsonl"\n'
    settings.write_text(f"{settings.read_text()}\n{paths}")
    result = run_tests(
        """
        from pathlib import Path
        from axolotl_testing import as_principal

        async def test_it(axolotl_client):
            for profile in "test", "audited":
                async with axolotl_client(profile=profile, principal=as_principal("a", roles=["clerk"])) as client:
                    await client.call("track_order", {"number": 7})
            assert [path.name for path in Path().glob("*.jsonl")] == ["test.jsonl"]
        """
    )
    result.assert_outcomes(passed=1)


def test_a_project_without_a_target(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """Without a settings file, the error says what to write."""
    pytester.path.joinpath("axolotl.toml").unlink()
    result = run_tests("async def test_it(axolotl_client):\n    async with axolotl_client(): ...")
    result.stdout.fnmatch_lines(["*There is no container: there is no axolotl.toml in * or above. Write target = *"])


LEAKY = """
import asyncio, threading
from contextlib import asynccontextmanager
from dependency_injector import containers, providers
from axolotl_core import Context, tool

end = threading.Event()

@tool(timeout_seconds=0.05)
def hang() -> str:
    end.wait(30)
    return "too late"

@tool
async def borrow(context: Context) -> str:
    await context.enter(held)
    return "borrowed"

@asynccontextmanager
async def held():
    yield
    await asyncio.Event().wait()

@tool
async def pooled() -> str:
    return await asyncio.to_thread(lambda: "done")

class Container(containers.DeclarativeContainer):
    tools = providers.Object([hang, borrow, pooled])
"""


@pytest.mark.slow
def test_leftovers_fail_the_test(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """Running code and open objects of calls fail the test."""
    pytester.makepyfile(leaky=LEAKY)
    result = run_tests(
        """
        import pytest
        from leaky import Container, end

        @pytest.fixture(autouse=True)
        def ended():
            end.clear()
            yield
            end.set()

        @pytest.mark.parametrize("name", ["hang", "borrow", "pooled"])
        async def test_leaks(axolotl_client, name):
            async with axolotl_client(Container) as client:
                await client.call(name)

        async def test_first_failure(axolotl_client):
            async with axolotl_client(Container) as client:
                await client.call("hang")
                assert False, "the test itself"
        """
    )
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "The block left over:",
            "  the code of hang, which still runs",
            "The block left over:",
            "  1 calls whose objects are not closed",
            "E   *AssertionError: the test itself",
        ]
    )


def test_functions_for_types() -> None:
    """The types of the fixtures can be imported for annotations."""
    import axolotl_testing

    assert all(hasattr(axolotl_testing, name) for name in axolotl_testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        axolotl_testing.nothing  # noqa: B018
